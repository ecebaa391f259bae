// Views that are no part of the first load.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { fail } from "../state/ui";

type View = () => preact.JSX.Element;

/** A view that is read when it is first shown: few need it in a day. */
export function makeLazy(read: () => Promise<View>): View {
  const held = signal<{ View: View } | null>(null);
  return function Lazy() {
    useEffect(() => void (held.value ?? read().then((View) => (held.value = { View }), fail)), []);
    return held.value ? <held.value.View /> : <></>;
  };
}

