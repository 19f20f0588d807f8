// All knobs of one side in one component. `value` is JSON in a string: knob -> text, only those that were set.
// `fields` lists [name, choices or null]; an empty field is the engine's default. `lacking` names those that the engine
// does not have: they are shown only while they are set.
const grid = element.querySelector('.knobs');
const inputs = {};
const texts = JSON.parse(document.getElementById('knob-texts')?.dataset.texts ?? '{}');

function field(name, choices) {
  const label = document.createElement('label');
  const caption = document.createElement('span');
  const own = document.createElement('code');
  const help = document.createElement('small');
  [caption.textContent, help.textContent] = texts[name] ?? [name, ''];
  own.textContent = name;
  const input = document.createElement(choices ? 'select' : 'input');
  for (const choice of choices ? ['', ...choices] : []) input.appendChild(new Option(choice, choice));
  if (!choices) input.spellcheck = false;
  input.name = name;
  input.addEventListener('change', () => {
    const set = Object.entries(inputs).filter(([, input]) => input.value.trim() !== '');
    props.value = JSON.stringify(Object.fromEntries(set.map(([key, input]) => [key, input.value.trim()])));
  });
  label.append(caption, own, input, help);
  grid.appendChild(label);
  inputs[name] = input;
}

function show() {
  const set = JSON.parse(props.value || '{}');
  for (const [name, input] of Object.entries(inputs)) {
    const text = set[name] ?? '';
    if (input.value !== text) input.value = text;
    input.closest('label').hidden = text === '' && (props.lacking ?? []).includes(name);
  }
}

for (const [name, choices] of props.fields) field(name, choices);
watch(['value', 'lacking'], show);
show();
