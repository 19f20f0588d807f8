// The buttons for what is open. A file comes as text, and is saved by the browser: nothing lies about on the server.
const box = element.querySelector('.kept');

function save(name, text) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], {type: 'text/plain;charset=utf-8'}));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

function add(text, action) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = text;
  button.addEventListener('click', () => action(button));
  box.appendChild(button);
}

function show() {
  const value = props.value && JSON.parse(props.value);
  box.replaceChildren();
  box.hidden = !value;
  if (!value) return;
  const {run, locale, formats, texts} = value;
  add(texts.load, () => trigger('click', {run}));
  for (const form of formats) {
    add(texts[form], async (button) => {
      button.disabled = true;
      button.textContent = texts.saving;
      try {
        const text = await server.file_text({run, form, locale});
        if (!text) throw new Error();
        save(`${run}.${form}`, text);
        button.textContent = texts[form];
      } catch {
        button.textContent = texts.failed;
      }
      button.disabled = false;
    });
  }
}

watch('value', show);
show();
