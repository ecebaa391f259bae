// A text in Markdown. Of one that streams in, only the block that changes is drawn again.
import { useMemo } from "preact/hooks";
import { copy } from "../state/ui";
import { languages } from "../text/highlight";
import { renderBlock, splitBlocks, type Block } from "../text/markdown";

function BlockView({ block, count }: { block: Block; count: number }) {
  const html = useMemo(() => renderBlock(block), [block.raw, count]);
  return <div class="block" dangerouslySetInnerHTML={{ __html: html }} />;
}

/** Copies the code above whose button was pressed. */
function onClick(event: MouseEvent): void {
  const button = event.target instanceof Element ? event.target.closest(".code-copy") : null;
  const code = button?.closest(".code")?.querySelector("code");
  if (code) void copy(code.textContent ?? "");
}

export function Markdown({ text, isLive = false }: { text: string; isLive?: boolean }) {
  const blocks = useMemo(() => splitBlocks(text, isLive), [text, isLive]);
  return (
    <div class="prose" onClick={onClick}>
      {blocks.map((block, index) => (
        <BlockView key={index} block={block} count={languages.value} />
      ))}
    </div>
  );
}
