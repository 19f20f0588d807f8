// What is followed sends this component's value, which is shown at once: of two values in a row the page's framework
// would skip the first, and setting `props.value` would not reach what watches it.
if (props.live) document.addEventListener(`live:${props.live}`, ({detail}) => show(detail));
