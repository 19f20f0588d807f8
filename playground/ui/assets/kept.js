// The buttons for what is open. A file comes as text, and is saved by the browser: nothing is left on the server.
const box = element.querySelector('.kept');

const types = {json: 'application/json', csv: 'text/csv', html: 'text/html'};

function save(name, form, text) {
  const link = document.createElement('a');
  // Without its mark a spreadsheet takes UTF-8 for something else.
  link.href = URL.createObjectURL(new Blob(form === 'csv' ? ['\ufeff', text] : [text], {type: types[form]}));
  link.download = name;
  link.click();
  // Some browsers fetch it only after the click.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
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
        save(`${run}.${form}`, form, text);
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
