// Whatever the page shows, nothing in it is hidden or turned around: each text passes here before it is drawn.
import { options, type VNode } from "preact";
import { showHidden } from "./format";

const before = options.vnode;

options.vnode = (vnode: VNode) => {
  // Preact makes a vnode without a type of each text, whatever returned it: a tag, a fragment or a component.
  const text = vnode as unknown as { type: unknown; props: unknown };
  if (typeof text.props === "string") text.props = showHidden(text.props);
  if (typeof vnode.type === "string") {
    const props = vnode.props as { title?: unknown; "aria-label"?: unknown };
    for (const name of ["title", "aria-label"] as const) if (typeof props[name] === "string") props[name] = showHidden(props[name]);
  }
  before?.(vnode);
};
