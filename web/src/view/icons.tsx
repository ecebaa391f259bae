// Small line icons of one hand, drawn here.
import type { ComponentChildren } from "preact";

const PATHS = {
  menu: "M3 6h18M3 12h18M3 18h18",
  plus: "M12 5v14M5 12h14",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM20 20l-4-4",
  file: "M14 3H6v18h12V7zM14 3v4h4",
  edit: "M4 20h4L19 9l-4-4L4 16z",
  terminal: "M4 6l6 6-6 6M12 18h8",
  globe: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18",
  list: "M9 6h11M9 12h11M9 18h11M4 6h1M4 12h1M4 18h1",
  agent: "M12 3v4M6 7h12v11H6zM9.5 12v1.5M14.5 12v1.5",
  folder: "M3 6h6l2 2.500h10V19H3z",
  question: "M9 9a3 3 0 1 1 4 3c-1 .5-1 1-1 2M12 17.5v.5",
  tool: "M14 6a4 4 0 0 0-5 5l-6 6 4 4 6-6a4 4 0 0 0 5-5l-3 3-3-1-1-3z",
  chevron: "M9 6l6 6-6 6",
  check: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M6 6l12 12M18 6L6 18",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  down: "M7 10l5 5 5-5",
  undo: "M9 7L4 12l5 5M4 12h10a6 6 0 0 1 6 6",
  redo: "M15 7l5 5-5 5M20 12H10a6 6 0 0 0-6 6",
  diff: "M12 4v10M7 9h10M7 20h10",
  theme: "M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18",
  settings: "M4 7h9M17 7h3M4 17h3M11 17h9M15 4.500v5M9 14.500v5",
  phone: "M7 2h10v20H7zM11 18h2",
  share: "M12 15V4M8 7.500l4-4 4 4M5 12v8h14v-8",
  copy: "M8 8h12v12H8zM16 8V4H4v12h4",
  fork: "M6 4v6a6 6 0 0 0 6 6h6M18 12l4 4-4 4M6 10v10",
  more: "M4 7h10M4 12h16M4 17h7",
  clip: "M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.3 3.3 0 0 1 5 5l-8.500 8.500a1.700 1.700 0 0 1-2.500-2.500L14.500 7.500",
  brain: "M12 5v14M9 5a3 3 0 0 0-3 3 3 3 0 0 0-2 5 3 3 0 0 0 3 5 3 3 0 0 0 5 1 3 3 0 0 0 5-1 3 3 0 0 0 3-5 3 3 0 0 0-2-5 3 3 0 0 0-3-3 3 3 0 0 0-3 0 3 3 0 0 0-3 0z",
};

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

interface ButtonProps {
  name: IconName;
  label: string;
  onClick: () => void;
  class?: string;
  pressed?: boolean;
  disabled?: boolean;
  /** What stands beside the icon where there is room. */
  children?: ComponentChildren;
}

/** A button that shows an icon; `label` says what it does. */
export function IconButton({ name, label, onClick, children, ...rest }: ButtonProps) {
  return (
    <button type="button" class={`icon-button ${rest.class ?? ""}`} aria-label={label} title={label} aria-pressed={rest.pressed} disabled={rest.disabled} onClick={onClick}>
      <Icon name={name} size={18} />
      {children && <span class="words">{children}</span>}
    </button>
  );
}
