"""llama.cpp's own server with a model of 2 MB that is written first: always "Works.",
or that without end.

python llama_server.py PORT CONTEXT [endless]: writes toy.gguf here, prints its URL,
serves until it is stopped.
PORT 0: any that is free. The model is a llama whose attention adds nothing, so that each byte
decides the next one: the "t" that ends its chat template is followed by "W", that by "o", and the
full stop by the end (or by "W" again). Everything around it is real.
"""

import signal
import sys
from itertools import pairwise
from pathlib import Path

import gguf
import numpy as np
import xllamacpp

BYTES = [*range(33, 127), *range(161, 173), *range(174, 256)]
"""Those that stand for themselves in GPT-2's alphabet;
the others have characters from 256 on, in order.
"""
OTHERS = [byte for byte in range(256) if byte not in BYTES]
ALPHABET = [chr(byte) if byte in BYTES else chr(256 + OTHERS.index(byte)) for byte in range(256)]
END, START = len(ALPHABET), len(ALPHABET) + 1
TOKENS = [*ALPHABET, "<|end|>", "<|start|>"]
TEMPLATE = (
    "{% if tools %}{{ tools | tojson }}{% endif %}"
    "{% for message in messages %}<|start|>{{ message['role'] }}\n{{ message['content'] }}<|end|>{% endfor %}"
    "<|start|>assistant"
)
ANSWER = "Works."
TRAINED = 131_072
HEADS = 4
WIDTH = 272
INNER = 32


def write_model(path: Path, is_endless: bool) -> None:
    """Write the model as a GGUF file."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(TRAINED)
    writer.add_block_count(1)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([gguf.TokenType.NORMAL] * len(ALPHABET) + [gguf.TokenType.CONTROL] * 2)
    writer.add_token_merges(["a b"])  # one at least is wanted, and this one makes no token
    writer.add_bos_token_id(START)
    writer.add_eos_token_id(END)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    output = np.zeros((len(TOKENS), WIDTH), np.float32)
    chain = [*f"t{ANSWER}".encode(), ord(ANSWER[0]) if is_endless else END]
    for now, following in pairwise(chain):
        output[following, now] = 1
    ones = np.ones(WIDTH, np.float32)
    tensors = {
        "token_embd": np.eye(len(TOKENS), WIDTH, dtype=np.float32),
        "output_norm": ones,
        "output": output,
        "blk.0.attn_norm": ones,
        "blk.0.ffn_norm": ones,
        **{
            f"blk.0.attn_{name}": np.zeros((WIDTH, WIDTH), np.float32)
            for name in ("q", "k", "v", "output")
        },
        **{f"blk.0.ffn_{name}": np.zeros((INNER, WIDTH), np.float32) for name in ("gate", "up")},
        "blk.0.ffn_down": np.zeros((WIDTH, INNER), np.float32),
    }
    for name, tensor in tensors.items():
        writer.add_tensor(f"{name}.weight", tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def serve(model: Path, port: int, context: int) -> None:
    """Serve the model on this machine until the process is stopped."""
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.port = port
    params.n_ctx = context
    params.cpuparams.n_threads = 1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    port, context, *endless = sys.argv[1:]
    path = Path("toy.gguf")
    write_model(path, bool(endless))
    serve(path, int(port), int(context))
