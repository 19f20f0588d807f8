// A component that shows its value as it is.
function show(value) { props.value = value; }
