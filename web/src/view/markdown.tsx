// A text in Markdown. Of one that streams in, only the block that changes is drawn again.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { copy } from "../state/ui";
import { languages } from "../text/highlight";
import { BlockSplitter, renderBlock, renderText, type Block } from "../text/markdown";
import { Cutter } from "../text/pieces";

const FIRST_PIECES = 2;

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

/** A piece that streams in, block by block. */
function LivePiece({ text, isLive }: { text: string; isLive: boolean }) {
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

/** A piece that is complete. */
function WholePiece({ text }: { text: string }) {
  const count = languages.value;
  const html = useMemo(() => renderText(text, count), [text, count]);
  return <div class="block" dangerouslySetInnerHTML={{ __html: html }} />;
}

/** The pieces of a text; those after the first are drawn in tasks of their own, a few at once. */
function Pieces({ text, isLive, isStreamed }: { text: string; isLive: boolean; isStreamed: boolean }) {
  const cutter = useMemo(() => new Cutter(), []);
  const pieces = useMemo(() => cutter.cut(text), [text]);
  const [count, setCount] = useState(isStreamed ? Infinity : FIRST_PIECES);
  const rest = pieces.length - count;
  useEffect(() => {
    if (rest <= 0) return;
    const timer = setTimeout(() => setCount(count + 1));
    return () => clearTimeout(timer);
  }, [count, rest > 0]);
  const last = pieces.length - 1;
  return (
    <>
      {pieces.slice(0, count).map((piece, index) => (
        <div key={index} class={piece.isRest ? "piece goes-on" : "piece"}>
          {isStreamed ? <LivePiece text={piece.text} isLive={isLive && index === last} /> : <WholePiece text={piece.text} />}
        </div>
      ))}
    </>
  );
}

export function Markdown({ text, isLive = false }: { text: string; isLive?: boolean }) {
  const wasLive = useRef(isLive).current; // what streamed in stays block by block: its end moves nothing
  return (
    <div class={wasLive ? "prose live" : "prose"} onClick={onClick}>
      <Pieces text={text} isLive={isLive} isStreamed={wasLive} />
    </div>
  );
}
