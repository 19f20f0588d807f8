// A message about a field ([data-at]: where that is) is said at the field too: under it, and to screen readers.
const id = 'field-message';
let marked;

function clear() {
  document.getElementById(id)?.remove();
  marked?.removeAttribute('aria-invalid');
  marked?.removeAttribute('aria-describedby');
  marked = undefined;
}

// What is folded away, or on a tab not looked at yet, is not in the page until it is opened.
async function found({field, folds}) {
  for (const fold of folds) {
    const button = document.querySelector(fold);
    if (button && !button.matches('.open, [aria-selected=true]')) button.click();
  }
  for (let tries = 0; tries < 40; tries++) {
    const input = document.querySelector(field);
    if (input) return input;
    await new Promise((done) => setTimeout(done, 50));
  }
}

async function mark(place, text) {
  const input = await found(place);
  if (!input) return;
  clear();
  const said = document.createElement('p');
  said.id = id;
  said.textContent = text;
  (input.closest('label, .block') ?? input).insertAdjacentElement('afterend', said);
  input.setAttribute('aria-invalid', 'true');
  input.setAttribute('aria-describedby', id);
  marked = input;
}

watch('value', () => {
  clear();
  // Once the framework has put the new text in.
  requestAnimationFrame(() => {
    const said = element.querySelector('[data-at]');
    if (said) mark(JSON.parse(said.dataset.at), said.textContent);
  });
});
