// A text in Markdown. Of one that streams in, only the block that changes is drawn again.
import { useMemo, useRef } from "preact/hooks";
import { copy } from "../state/ui";
import { languages } from "../text/highlight";
import { BlockSplitter, renderBlock, renderText, type Block } from "../text/markdown";

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

/** A text that streams in, block by block. */
function LiveText({ text, isLive }: { text: string; isLive: boolean }) {
  const splitter = useMemo(() => new BlockSplitter(), []);
  const blocks = useMemo(() => splitter.split(text, isLive), [text, isLive]);
  return (
    <>
      {blocks.map((block, index) => (
        <BlockView key={index} block={block} count={languages.value} />
      ))}
    </>
  );
}

/** A text that is complete, in one piece. */
function WholeText({ text }: { text: string }) {
  const count = languages.value;
  const html = useMemo(() => renderText(text, count), [text, count]);
  return <div class="block" dangerouslySetInnerHTML={{ __html: html }} />;
}

export function Markdown({ text, isLive = false }: { text: string; isLive?: boolean }) {
  const wasLive = useRef(isLive).current; // what streamed in stays block by block: its end moves nothing
  return (
    <div class={wasLive ? "prose live" : "prose"} onClick={onClick}>
      {wasLive ? <LiveText text={text} isLive={isLive} /> : <WholeText text={text} />}
    </div>
  );
}
