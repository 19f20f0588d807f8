// A message about a field ([data-at] is its selector) is said at the field too: under it, and to screen readers.
const id = 'field-message';
let marked;

function clear() {
  document.getElementById(id)?.remove();
  marked?.removeAttribute('aria-invalid');
  marked?.removeAttribute('aria-describedby');
  marked = undefined;
}

// What is folded away, or on a tab not looked at yet, may not be in the page until it is opened.
function open(selector) {
  const input = document.querySelector(selector);
  for (let box = input?.parentElement; box; box = box.parentElement) {
    const folded = box.querySelector(':scope > button[aria-expanded=false], :scope > button.label-wrap:not(.open)');
    if (folded) folded.click();
    const tab = box.matches('[role=tabpanel]') && document.querySelector(`[role=tab][aria-controls="${box.id}"]`);
    if (tab && tab.getAttribute('aria-selected') !== 'true') tab.click();
  }
  return input;
}

function mark(selector, text) {
  const input = open(selector);
  if (!input) return;
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
    if (said) mark(said.dataset.at, said.textContent);
  });
});
