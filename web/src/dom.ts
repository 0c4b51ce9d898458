// Elements, made in one line.
type Child = Node | string | null | undefined | false | Child[];
type Props = Record<string, unknown>;

function fill(element: Element, props: Props, children: Child[]): void {
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || (value === false && !key.startsWith("aria-"))) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value as EventListener);
    else if (key === "value" && "value" in element) (element as HTMLInputElement).value = String(value);
    else element.setAttribute(key, value === true && !key.startsWith("aria-") ? "" : String(value));
  }
  const add = (child: Child): void => {
    if (Array.isArray(child)) child.forEach(add);
    else if (child !== null && child !== undefined && child !== false) element.append(child);
  };
  children.forEach(add);
}
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, props, children);
  return element;
}
export function svg(tag: string, props: Props = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(element, props, children);
  return element;
}
/** A part that is drawn again by itself: a slider beside it may move it without being replaced under the finger. */
export function live(draw: () => Child[]): { element: HTMLElement; redraw: () => void } {
  const element = document.createElement("div");
  const redraw = (): void => { element.replaceChildren(); fill(element, {}, draw()); };
  redraw();
  return { element, redraw };
}
/** A clickable shape that the keyboard reaches as well. */
export function pressable(props: Props, label: string, act: () => void): Props {
  return {
    ...props, tabindex: 0, role: "button", "aria-label": label, onclick: act,
    onkeydown: (e: KeyboardEvent) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); act(); } },
  };
}
