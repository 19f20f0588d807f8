// The list of runs: one button a row, so that the keyboard opens a run too.
// Runs are chosen with a box each, and then put beside each other. `compare`: the button's text, where that can be.
const most = 4;

function chooser(table, text) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'compare';
  button.textContent = text;
  button.hidden = true;
  const boxes = () => [...table.querySelectorAll('input:checked')];
  table.addEventListener('change', () => {
    const chosen = boxes().length;
    button.hidden = chosen < 2;
    table.querySelectorAll('input:not(:checked)').forEach((box) => { box.disabled = chosen >= most; });
  });
  button.addEventListener('click', () => trigger('click', {compared: boxes().map((box) => box.value).reverse()}));
  return button;
}

function addBox(row, id, label) {
  const box = document.createElement('input');
  box.type = 'checkbox';
  box.value = id;
  box.setAttribute('aria-label', `${label} ${id}`);
  box.addEventListener('click', (event) => event.stopPropagation());
  row.insertCell().appendChild(box);
}

function show(text) {
  const value = text && JSON.parse(text);
  const table = element.querySelector('table');
  table.replaceChildren();
  if (!value || !value.rows.length) return;
  const head = table.createTHead().insertRow();
  // `columns`: names that the style sheet knows, where there are any.
  const named = (cell, index) => {
    if (value.columns) cell.dataset.column = value.columns[index];
    return cell;
  };
  value.headers.forEach((name, index) => {
    const cell = named(document.createElement('th'), index);
    cell.textContent = name;
    head.appendChild(cell);
  });
  if (value.compare) {
    head.appendChild(document.createElement('td'));
    table.createCaption().appendChild(chooser(table, value.compare));
  }
  const body = table.createTBody();
  for (const {id, cells, comparable} of value.rows) {
    const row = body.insertRow();
    // A sweep's point that was not measured has no run yet.
    if (id) row.addEventListener('click', () => {
      body.querySelectorAll('.open').forEach((other) => other.classList.remove('open'));
      row.classList.add('open');
      trigger('click', {run: id});
    });
    cells.forEach((text, index) => {
      const cell = document.createElement(index ? 'span' : 'button');
      cell.textContent = text;
      // Where the text is cut off.
      cell.title = text;
      named(row.insertCell(), index).appendChild(cell);
    });
    if (comparable) addBox(row, id, value.compare);
    else if (value.compare) row.insertCell();
  }
}

watch('value', () => show(props.value));
show(props.value);
