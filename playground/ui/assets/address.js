// The addresses of this page: `?run=ID` and the like, which ui/links.py reads.
const ours = ['run', 'sweep', 'preset', 'reuse', 'compare'];

function addressOf(name, value) {
  // Made anew: what else stands in the address is nobody else's affair.
  return `${location.origin}${location.pathname}?${name}=${value.split(',').map(encodeURIComponent).join(',')}`;
}

// A reload comes back to what is shown.
function showAddress(name, value) {
  const rest = new URLSearchParams(location.search);
  for (const key of ours) rest.delete(key);
  const others = rest.toString();
  window.history.replaceState(window.history.state, '', addressOf(name, value) + (others && `&${others}`));
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // The clipboard is available only to a page that came by https, or from this machine.
    const field = document.createElement('textarea');
    field.value = text;
    document.body.appendChild(field);
    field.select();
    const copied = document.execCommand('copy');
    field.remove();
    return copied;
  }
}
