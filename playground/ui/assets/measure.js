// The whole form of a measurement in one component. `value` is JSON in a string: field -> text. `groups` lists the
// fields, `choices` those with a list of values, `shown` on what others a field depends, `words` those that are no numbers, `texts` all words by locale.
const box = element.querySelector('.fields');
const known = navigator.languages.map((tag) => tag.toLowerCase()).find((tag) => /^(zh|en)/.test(tag));
const locale = known?.startsWith('zh') ? 'zh-CN' : 'en';
const texts = props.texts[locale];
const inputs = {};
const rows = {};
const note = document.createElement('span');
note.className = 'hint';
note.setAttribute('role', 'status');

function changed() {
  const entries = Object.entries(inputs).map(([name, one]) => [name, one.type === 'checkbox' ? (one.checked ? 'true' : '') : one.value]);
  props.value = JSON.stringify(Object.fromEntries(entries));
  hide();
}

function hide() {
  for (const [name, [other, values]] of Object.entries(props.shown)) rows[name].hidden = !values.includes(inputs[other].value);
}

async function send(file) {
  note.className = 'hint';
  note.textContent = texts.uploading;
  inputs.file.value = '';
  let answer;
  try {
    const {path} = await upload(file);
    answer = await server.look_at_upload({path, locale});
    if (answer.good) inputs.file.value = path;
  } catch (error) {
    answer = {good: false, text: String(error.message ?? error)};
  }
  note.className = answer.good ? 'hint' : 'hint bad';
  note.textContent = answer.text;
  changed();
}

function chooser() {
  const picker = document.createElement('input');
  picker.type = 'file';
  picker.accept = '.txt,.jsonl,.csv,.json';
  picker.setAttribute('aria-label', texts.upload);
  picker.addEventListener('change', () => picker.files[0] && send(picker.files[0]));
  return picker;
}

function control(name) {
  if (props.choices[name]) {
    const list = document.createElement('select');
    const named = (choice) => texts[`${name}.${choice}`];
    for (const choice of props.choices[name]) list.appendChild(new Option(named(choice), choice));
    return list;
  }
  const input = document.createElement('input');
  if (name.startsWith('check_')) input.type = 'checkbox';
  else if (name === 'file') input.type = 'hidden';
  else if (!props.words.includes(name)) input.inputMode = 'decimal';
  return input;
}

function field(name) {
  const label = document.createElement('label');
  const caption = document.createElement('span');
  caption.textContent = texts[name];
  const input = control(name);
  input.name = name;
  input.addEventListener('change', changed);
  label.append(...(input.type === 'checkbox' ? [input, caption] : [caption, input]));
  if (input.type === 'checkbox') label.className = 'check';
  if (name === 'file') {
    label.className = 'upload';
    label.append(chooser(), note);
  }
  inputs[name] = input;
  rows[name] = label;
  return label;
}

function show() {
  const value = JSON.parse(props.value);
  for (const [name, input] of Object.entries(inputs)) {
    const text = value[name] ?? '';
    if (input.type === 'checkbox') input.checked = text !== '';
    else if (input.value !== text) input.value = text;
    if (name === 'file') note.textContent = text.split('/').pop();
  }
  hide();
}

for (const [name, fields] of props.groups) {
  const group = document.createElement('fieldset');
  const legend = document.createElement('legend');
  legend.textContent = texts[name];
  const grid = document.createElement('div');
  grid.className = 'grid';
  grid.append(...fields.map(field));
  group.append(legend, grid);
  box.appendChild(group);
}
watch('value', show);
show();
