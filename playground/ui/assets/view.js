// The panes of a run. `value` is JSON in a string (the page's framework would wrap each nested value in a proxy of its
// own), and carries only what is new: tokens from index `from` on (with some overlap, since a repaint may be skipped),
// and facts when they changed. Text always goes in as text, never as markup.
const root = element.querySelector('.panes');
const panes = [];
let run = null;

const make = (parent, tag, name, text) => {
  const node = document.createElement(tag);
  if (name) node.className = name;
  if (text !== undefined) node.textContent = text;
  parent.appendChild(node);
  return node;
};

function showAsked(value) {
  const asked = element.querySelector('.asked');
  asked.hidden = !value.asked;
  asked.replaceChildren();
  make(asked, 'summary', '', value.asked_label);
  const list = make(asked, 'dl');
  for (const [name, text] of value.asked ?? []) {
    make(list, 'dt', '', name);
    make(list, 'dd', '', text);
  }
}

function build(value) {
  root.replaceChildren();
  panes.length = 0;
  run = value.run;
  for (const side of value.sides) {
    const box = make(root, 'section', 'pane');
    const head = make(box, 'header');
    make(head, 'h3', '', side.label);
    make(head, 'span', 'badge', side.method);
    const place = make(head, 'span', 'badge');
    const stage = make(box, 'div', 'stage');
    const stageText = make(stage, 'span');
    const bar = make(make(stage, 'div', 'track'), 'div', 'bar');
    const answer = make(box, 'div', 'answer');
    answer.tabIndex = 0;
    answer.setAttribute('aria-label', side.label);
    const text = make(answer, 'div', 'text');
    const empty = make(text, 'p', 'empty', value.empty);
    const problem = make(box, 'div', 'problem');
    const legend = make(box, 'div', 'legend');
    const facts = make(box, 'dl', 'facts');
    const details = make(box, 'details', 'command');
    make(details, 'summary', '', value.command_label);
    const command = make(details, 'code');
    panes.push({place, stage, stageText, bar, text, empty, problem, legend, facts, details, command, values: [], count: 0});
  }
}

function append(pane, side) {
  if (side.reset) {
    pane.text.querySelectorAll('.token').forEach((node) => node.remove());
    pane.count = 0;
  }
  const fresh = side.spans.slice(Math.max(0, pane.count - side.from));
  if (!fresh.length) return;
  pane.count += fresh.length;
  pane.empty.hidden = true;
  // Neighbours of one colour share an element: fewer to lay out. The style sheet keeps the view at the end.
  const fragment = document.createDocumentFragment();
  let last = null;
  for (const [text, drafted] of fresh) {
    if (last && last.drafted === drafted) last.text += text;
    else fragment.appendChild((last = {text, drafted, node: document.createElement('span')}).node);
    last.node.className = drafted ? 'token draft' : 'token';
    last.node.textContent = last.text;
  }
  pane.text.appendChild(fragment);
}

function showFacts(pane, side) {
  if (pane.values.length !== side.facts.length) {
    pane.facts.replaceChildren();
    pane.values = side.facts.map(([name, , help]) => {
      const item = make(pane.facts, 'div');
      item.title = help;
      make(item, 'dt', '', name);
      return make(item, 'dd');
    });
  }
  side.facts.forEach(([, text], index) => {
    if (pane.values[index].textContent !== text) pane.values[index].textContent = text;
  });
}

function showLegend(pane, legend) {
  pane.legend.replaceChildren();
  for (const [name, text] of legend) make(pane.legend, 'span', name, text);
}

function showProblem(pane, problem) {
  pane.problem.replaceChildren();
  if (!problem) return;
  make(pane.problem, 'p', '', problem.message);
  if (problem.log.length) make(pane.problem, 'pre', '', problem.log.join('\n'));
}

function show() {
  if (!props.value) return;
  const value = JSON.parse(props.value);
  if (value.run !== run || value.sides.length !== panes.length) build(value);
  element.querySelector('.headline').textContent = value.headline;
  element.querySelector('.note').textContent = value.note;
  if (value.asked) showAsked(value);
  value.sides.forEach((side, index) => {
    const pane = panes[index];
    append(pane, side);
    if (!side.facts) return;
    pane.place.textContent = side.place;
    pane.stage.hidden = !side.stage;
    pane.stageText.textContent = side.stage;
    pane.bar.parentNode.hidden = side.fraction === null;
    pane.bar.style.width = `${(side.fraction ?? 0) * 100}%`;
    pane.details.hidden = !side.command;
    pane.command.textContent = side.command;
    showFacts(pane, side);
    showLegend(pane, side.legend);
    showProblem(pane, side.problem);
  });
}

watch('value', show);
show();
