// The buttons for the opened run or sweep. A file comes as text, and the browser saves it: the server keeps none.
const box = element.querySelector('.kept');

const types = {json: 'application/json', csv: 'text/csv', html: 'text/html'};

function save(name, form, text) {
  const link = document.createElement('a');
  // Without the byte order mark a spreadsheet does not recognise UTF-8.
  link.href = URL.createObjectURL(new Blob(form === 'csv' ? ['\ufeff', text] : [text], {type: types[form]}));
  link.download = name;
  link.click();
  // Some browsers fetch the file only after the click.
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
  const {run, kind, locale, formats, texts} = value;
  if (texts.link) {
    showAddress(kind, run);
    add(texts.link, async (button) => {
      button.textContent = await copyText(addressOf(kind, run)) ? texts.copied : addressOf(kind, run);
    });
  }
  if (texts.load) add(texts.load, () => trigger('click', {run}));
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
