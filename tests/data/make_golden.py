#!/usr/bin/env python3
"""Makes tests/data/golden with HuggingFace's tokenizers, the reference for ours.

usage: make_golden.py FOLDER    (which holds GPT-2's vocab.json and merges.txt)

gpt2.json       texts and their tokens by GPT-2's tokenizer
corpus.txt      a small text
bpe.json        the tokenizer.json that training on corpus.txt gives, with 600 tokens
bpe_texts.json  the texts and their tokens by that
"""
import json
import pathlib
import random
import sys

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

GOLDEN = pathlib.Path(__file__).parent / "golden"
END = "<|endoftext|>"
TEXTS = [
    "", " ", "a", "Hello world",
    "Hello, world! It's me; they're late, we've won, I'm in, he'll go, she'd stay.",
    "don't DON'T 'tis rock'n'roll ''s 's 'S 're're 'x l'll", "one  two   three    four     ", "   leading",
    "tabs\tand\t\ttabs \t mixed\n", "line\nbreaks\n\n\nand\r\nWindows\r\n\r\n", "\n\n  indented\n    code(x) {\n\t}\n",
    "3 33 333 3.14159 1,000,000 x2 2x a1b2 ½ ² Ⅷ ٣٤ 一二", "naïve café Ångström Zürich ÆØÅ ß ſ ﬁ",
    "Привет, мир! Ελληνικά עברית العربية हिन्दी ไทย", "日本語のテキスト。中文字符，測試！한국어",
    "👍🏽 👩‍👩‍👧‍👦 emoji 🎉🎉🎉 ok🙂ok ❤️", "e\u0301 combining o\u0308\u0323", "\u00a0nbsp\u2003em\u3000wide\u2028sep\u200bzero",
    "!!!??? -- ... ((())) [x] {y} <z> a+b=c 50% $9.99 #tag @me _under_ `code`", "http://example.org/a?b=c&d=%20e#f",
    "<|endoftext|>", "before<|endoftext|>after <|endoftext|>\n<|endoftext|><|endoftext|> <|endof text|>",
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis", "a" * 300, "ab" * 100 + "c",
    "\x00\x01\x1f\x7f\x80\x85 control", "x \x1c y\x1d z", "\ufeffBOM \U000e0001 \U0010ffff \ue000",
]
PIECES = ["the", "them", "then", " the", " theme", "abc", "bcab", "aaaa", "aaaaa", "naïve", "日本", "日", "🎉", "'s", "'ll",
          " ", "  ", "\n", "\n\n", "12", "123", "2026", "!", "?!", "--", "low", " lower", " lowest", "new", " newer"]


def corpus():
    draw = random.Random(7)
    paragraphs = [text for text in TEXTS if END not in text and "\x00" not in text]
    for _ in range(40):
        paragraphs.append("".join(draw.choice(PIECES) for _ in range(60)))
    return "\n".join(paragraphs)


def byte_level(model):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def encodings(tokenizer):
    rows = [json.dumps({"text": text, "tokens": tokenizer.encode(text).ids}) for text in TEXTS]
    return "[\n" + ",\n".join(rows) + "\n]\n"


def main():
    gpt2 = pathlib.Path(sys.argv[1])
    GOLDEN.mkdir(exist_ok=True)
    tokenizer = byte_level(models.BPE.from_file(str(gpt2 / "vocab.json"), str(gpt2 / "merges.txt")))
    tokenizer.add_special_tokens([AddedToken(END, special=True, normalized=False)])
    (GOLDEN / "gpt2.json").write_text(encodings(tokenizer))

    (GOLDEN / "corpus.txt").write_bytes(corpus().encode())
    tokenizer = byte_level(models.BPE())
    trainer = trainers.BpeTrainer(vocab_size=600, min_frequency=2, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([(GOLDEN / "corpus.txt").read_bytes().decode()], trainer)
    tokenizer.add_special_tokens([AddedToken(END, special=True, normalized=False)])
    tokenizer.save(str(GOLDEN / "bpe.json"), pretty=False)
    (GOLDEN / "bpe_texts.json").write_text(encodings(tokenizer))


if __name__ == "__main__":
    main()
