// A measured run: the state of each side, then one table of all sides' figures. The answers are folded away.
const figures = element.querySelector('.figures');
let cells = [];

function buildMeasured(box) {
  const answers = make(box, 'details', 'answers');
  answers.hidden = true;
  return {problem: make(box, 'div', 'problem'), answers, title: make(answers, 'summary'), list: make(answers, 'div')};
}

function showMeasured(pane, side) {
  pane.box.classList.toggle('serving', side.serving);
  if (side.answers === undefined) return;
  pane.answers.hidden = !side.answers;
  if (!side.answers) return;
  pane.title.textContent = side.answers.title;
  pane.list.replaceChildren();
  for (const [question, answer] of side.answers.pairs) {
    make(pane.list, 'p', 'question', question);
    make(pane.list, 'p', 'reply', answer);
  }
}

function named(row, side) {
  const head = make(row, 'th', 'side', side.label);
  head.style.setProperty('--side', side.colour);
  return head;
}

function headed(headers) {
  const table = make(make(figures, 'div', 'scroll'), 'table');
  const head = make(make(table, 'thead'), 'tr');
  for (const name of headers) make(head, 'th', '', name);
  return [table, head];
}

// Built once per run, so that the reader's focus and selection stay.
function buildTable(value) {
  figures.replaceChildren();
  cells = [];
  const {table: {unit, single_name, columns, distributions, single}, sides} = value;
  const [spread] = headed([unit, ...columns]);
  for (const figure of distributions) {
    const body = make(spread, 'tbody');
    const head = make(make(body, 'tr', 'name'), 'th');
    head.colSpan = columns.length + 1;
    term(head, figure.name, figure.definition);
    for (const side of sides) {
      const row = make(body, 'tr');
      named(row, side);
      for (const _ of columns) cells.push(make(row, 'td'));
    }
  }
  const [singles, head] = headed([single_name]);
  for (const side of sides) named(head, side);
  const body = make(singles, 'tbody');
  for (const figure of single) {
    const row = make(body, 'tr');
    term(make(row, 'th'), figure.name, figure.definition);
    for (const _ of sides) cells.push(make(row, 'td'));
  }
}

function showTable(value) {
  figures.hidden = !value.table;
  if (!value.table) return;
  if (!cells.length) buildTable(value);
  const {distributions, single} = value.table;
  [...distributions, ...single].flatMap((row) => row.cells.flat()).forEach((text, index) => put(cells[index], text));
}
