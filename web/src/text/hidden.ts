// Whatever the page shows, nothing in it is hidden or turned around: each text of an element passes here before it is drawn.
import { options, type ComponentChild, type VNode } from "preact";
import { showHidden } from "./format";

function clean(child: unknown): unknown {
  if (typeof child === "string") return showHidden(child);
  return Array.isArray(child) ? child.map(clean) : child;
}

const before = options.vnode;

options.vnode = (vnode: VNode) => {
  if (typeof vnode.type === "string") {
    const props = vnode.props as { children?: ComponentChild; title?: unknown; "aria-label"?: unknown };
    for (const name of ["children", "title", "aria-label"] as const) if (typeof props[name] === "string" || Array.isArray(props[name])) props[name] = clean(props[name]) as never;
  }
  before?.(vnode);
};
