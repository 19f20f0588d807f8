// A measured run: the state of each side, then one table of all sides' figures. The answers are folded away.
const figures = element.querySelector('.all-figures .figures');
const keyFigures = element.querySelector('.key-figures');
let cells = [];

function buildMeasured(box) {
  const answers = make(box, 'details', 'answers');
  answers.hidden = answers.open = true;
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

function headed(parent, headers) {
  const table = make(make(parent, 'div', 'scroll'), 'table');
  const head = make(make(table, 'thead'), 'tr');
  for (const name of headers) make(head, 'th', '', name);
  return [table, head];
}

// One row a figure, one column a side.
function buildSingles(parent, name, rows, sides) {
  const [table, head] = headed(parent, [name]);
  for (const side of sides) named(head, side);
  const body = make(table, 'tbody');
  for (const figure of rows) {
    const row = make(body, 'tr');
    term(make(row, 'th'), figure.name, figure.definition);
    for (const _ of sides) cells.push(make(row, 'td'));
  }
}

// Built once per run, so that the reader's focus and selection stay.
function buildTable(value) {
  figures.replaceChildren();
  keyFigures.replaceChildren();
  cells = [];
  const {table: {title, unit, single_name, columns, key, distributions, single}, sides} = value;
  put(element.querySelector('.all-figures summary'), title);
  buildSingles(keyFigures, single_name, key, sides);
  const [spread] = headed(figures, [unit, ...columns]);
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
  buildSingles(figures, single_name, single, sides);
}

function showCaveats(caveats) {
  const list = element.querySelector('.caveats');
  list.replaceChildren();
  for (const text of caveats) make(list, 'li', '', text);
}

function showTable(value) {
  element.querySelector('.all-figures').hidden = keyFigures.hidden = !value.table;
  if (!value.table) return;
  if (!cells.length) buildTable(value);
  showCaveats(value.caveats);
  const {key, distributions, single} = value.table;
  [...key, ...distributions, ...single].flatMap((row) => row.cells.flat()).forEach((text, index) => put(cells[index], text));
}
