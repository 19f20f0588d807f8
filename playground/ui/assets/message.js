// Shows a message about a field ([data-at]: the field's place) at the field, too: under it, and to screen readers.
const id = 'field-message';
let marked;

function clear() {
  document.getElementById(id)?.remove();
  marked?.removeAttribute('aria-invalid');
  marked?.removeAttribute('aria-describedby');
  marked = undefined;
}

async function mark(place, text) {
  const input = await find(place);
  if (!input) return;
  clear();
  const note = document.createElement('p');
  note.id = id;
  note.textContent = text;
  (input.closest('label, .block') ?? input).insertAdjacentElement('afterend', note);
  input.setAttribute('aria-invalid', 'true');
  input.setAttribute('aria-describedby', id);
  marked = input;
}

watch('value', () => {
  clear();
  // Once the framework has put the new text in.
  requestAnimationFrame(() => {
    const alert = element.querySelector('[data-at]');
    if (alert) mark(JSON.parse(alert.dataset.at), alert.textContent);
  });
});
