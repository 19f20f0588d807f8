// The addresses of this page: `?run=ID` and the like, which ui/links.py reads.
const ours = ['run', 'sweep', 'preset', 'recording', 'reuse', 'replay', 'compare'];

function queryOf(values) {
  return Object.entries(values).map(([name, value]) => `${name}=${value.split(',').map(encodeURIComponent).join(',')}`);
}

function addressOf(name, value, more = {}) {
  // Made anew: of what else stands in the address, only the language is somebody else's affair.
  const lang = new URLSearchParams(location.search).get('lang');
  const query = queryOf({[name]: value, ...more, ...(lang && {lang})});
  return `${location.origin}${location.pathname}?${query.join('&')}`;
}

// A reload comes back to what is shown; without a name, to the page as it begins.
function showAddress(name, value, more = {}) {
  const rest = new URLSearchParams(location.search);
  for (const key of ours) rest.delete(key);
  const others = rest.toString();
  const query = [...(name ? queryOf({[name]: value, ...more}) : []), ...(others ? [others] : [])].join('&');
  window.history.replaceState(window.history.state, '', location.pathname + (query && `?${query}`));
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
