// The list of runs: one button a row, so that the keyboard opens a run too.
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
  const body = table.createTBody();
  for (const {id, cells} of value.rows) {
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
  }
}

watch('value', () => show(props.value));
show(props.value);
