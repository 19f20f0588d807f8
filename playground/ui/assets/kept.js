// The buttons for the opened run or sweep. A file comes as text, and the browser saves it: the server keeps none.
const box = element.querySelector('.kept');

const types = {csv: 'text/csv', html: 'text/html'};
// What a file's name ends with, where that is not its format.
const endings = {'vllm-bench': 'vllm-bench.json', original: 'original.json'};

function save(name, form, text) {
  const link = document.createElement('a');
  // Without the byte order mark a spreadsheet does not recognise UTF-8.
  link.href = URL.createObjectURL(new Blob(form === 'csv' ? ['\ufeff', text] : [text], {type: types[form] ?? 'application/json'}));
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

// What people add to a run, and its deletion, which can be undone.
function addNotes({run, added, texts}) {
  const state = {...added};
  const change = async (fields) => {
    const done = await server.annotate({run, ...fields}).catch(() => false);
    if (done) trigger('change');
    return done;
  };
  const starText = () => `${state.star ? '★' : '☆'} ${state.star ? texts.starred : texts.star}`;
  add(starText(), async (button) => {
    state.star = !state.star;
    if (!await change(state)) state.star = !state.star;
    button.textContent = starText();
  });
  for (const name of ['tags', 'note']) {
    const field = document.createElement('input');
    field.value = state[name];
    field.placeholder = texts[name];
    field.setAttribute('aria-label', texts[name]);
    field.addEventListener('change', async () => {
      state[name] = field.value;
      field.setAttribute('aria-invalid', String(!await change(state)));
    });
    box.appendChild(field);
  }
  let deleted = false;
  add(texts.delete, async (button) => {
    if (await change({deleted: !deleted})) deleted = !deleted;
    button.textContent = deleted ? `${texts.deleted} ${texts.undo}` : texts.delete;
  });
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
  if (texts.again) add(texts.again, (button) => {
    button.disabled = true;
    trigger('submit', {run});
  });
  if (texts.replay) add(texts.replay, () => {
    showAddress('run', run, {replay: '1'});
    location.reload();
  });
  if (texts.load) add(texts.load, () => trigger('click', {run}));
  if (value.added) addNotes(value);
  for (const form of formats) {
    add(texts[form], async (button) => {
      button.disabled = true;
      button.textContent = texts.saving;
      try {
        const text = await server.file_text({run, form, locale});
        if (!text) throw new Error();
        save(`${run}.${endings[form] ?? form}`, form, text);
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
