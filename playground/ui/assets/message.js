// Shows a message about a field ([data-at]: the field's place) at the field, too: under it, and to screen readers.
let marked = [];

function clear() {
  document.querySelectorAll('.field-message').forEach((note) => note.remove());
  for (const input of marked) {
    input.removeAttribute('aria-invalid');
    input.removeAttribute('aria-describedby');
  }
  marked = [];
}

async function mark(place, text) {
  const input = await find(place);
  if (!input) return;
  const note = document.createElement('p');
  note.className = 'field-message';
  note.id = `field-message-${marked.length}`;
  note.textContent = text;
  (input.closest('label, .block') ?? input).insertAdjacentElement('afterend', note);
  input.setAttribute('aria-invalid', 'true');
  input.setAttribute('aria-describedby', note.id);
  marked.push(input);
}

watch('value', () => {
  clear();
  // Once the framework has put the new text in.
  requestAnimationFrame(async () => {
    // One after the other: each may open a tab. The first is where the eye is led.
    const alerts = [...element.querySelectorAll('[data-at]')].reverse();
    for (const alert of alerts) await mark(JSON.parse(alert.dataset.at), alert.textContent);
  });
});
