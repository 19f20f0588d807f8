// A text file that is dropped on a field of the class takes-text is typed into it by the browser; none is uploaded.
// Of a longer file the beginning is enough: it is refused for its length.
const mostBytes = 1_000_000;

function droppedOn(event) {
  if (!event.dataTransfer?.types.includes('Files')) return null;
  return event.target.closest?.('.takes-text')?.querySelector('textarea');
}

document.addEventListener('dragover', (event) => {
  if (droppedOn(event)) event.preventDefault();
});

document.addEventListener('drop', async (event) => {
  const input = droppedOn(event);
  const file = event.dataTransfer?.files[0];
  if (!input || !file) return;
  event.preventDefault();
  const bytes = new Uint8Array(await file.slice(0, mostBytes).arrayBuffer());
  const wide = {'255,254': 'utf-16le', '254,255': 'utf-16be'}[bytes.slice(0, 2).join()];
  input.value = new TextDecoder(wide ?? 'utf-8').decode(bytes);
  input.dispatchEvent(new Event('input', {bubbles: true}));
});
