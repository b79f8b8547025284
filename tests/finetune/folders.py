"""Tokenizers trained on the spot, in folders as Hugging Face has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..backends.installed import optional

tokenizers, jinja2 = optional("tokenizers"), optional("jinja2")

TEXTS = [
    "The tide comes in and the tide goes out; nobody asked it to.",
    "What is the capital of France? Paris is the capital of France.",
    "user assistant system You are a helpful assistant. Ça va très bien, merci!\n\n  indented\n",
    "think </think> 日本語のテキスト emoji 🙂🙃 numbers 0123456789",
]
SPECIAL = ["<|endoftext|>", "<|begin|>", "<|im_start|>", "<|im_end|>", "<|header|>", "<|end_header|>", "<|eot|>"]

#: Templates with the features of those of well-known models, by what they are like.
CHATML = """\
{%- for message in messages %}
    {%- if loop.first and message.role != 'system' %}
        {{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}
    {%- endif %}
    {{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

#: As in Qwen3: a thought is written in the answers after the last question only, an empty one where there is none.
THINKING = """\
{%- set ns = namespace(last=-1) %}
{%- for message in messages[::-1] %}
    {%- if message.role == 'user' and ns.last < 0 %}
        {%- set ns.last = (messages|length - 1) - loop.index0 %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role != 'assistant' %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
        {%- continue %}
    {%- endif %}
    {%- set content = message.content %}
    {%- set thought = '' %}
    {%- if '</think>' in content %}
        {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
    {%- endif %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if loop.index0 > ns.last and (loop.last or thought) %}
        {{- '<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' }}
    {%- endif %}
    {{- content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

#: As in Llama 3: headers, trimmed contents, a token that begins the text, and the date.
HEADERS = """\
{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|header|>system<|end_header|>\\n\\n" }}
{{- "Today: " + strftime_now("%Y") + "\\n\\n" }}
{{- system_message + "<|eot|>" }}
{%- for message in messages %}
    {{- '<|header|>' + message['role'] + '<|end_header|>\\n\\n' + message['content'] | trim + '<|eot|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|header|>assistant<|end_header|>\\n\\n' }}
{%- endif %}
"""

#: As in Llama 2 and Mistral: no generation prompt, roles that must take turns, the system in the last question.
BRACKETS = """\
{{ bos_token }}{% if messages[0].role == 'system' %}{% set system = messages[0].content %}\
{% set messages = messages[1:] %}{% endif %}
{% for message in messages %}
{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('roles must take turns') }}
{% endif %}
{% if message.role == 'user' %}
[INST] {% if system is defined and loop.index0 >= messages|length - 2 and loop.index0 % 2 == 0 %}{{ system }}

{% endif %}{{ message.content }} [/INST]\
{% else %} {{ message.content }}{{ eos_token }}\
{% endif %}
{% endfor %}
"""

#: A template that says itself what the model writes.
GENERATION = """\
{% for message in messages %}
{% if message.role == 'assistant' %}
<|im_start|>assistant
{% generation %}
{{ message.content }}<|im_end|>{% endgeneration %}

{% else %}
{{ '<|im_start|>' + message.role + '\\n' + (message | tojson) + '<|im_end|>\\n' }}
{%- endif %}
{% endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}
"""

TEMPLATES = {
    "chatml": CHATML, "thinking": THINKING, "headers": HEADERS, "brackets": BRACKETS, "generation": GENERATION,
}  # fmt: skip


def write_folder(folder: Path, template: Any = CHATML, trim_offsets: bool = True, **config: Any) -> Path:
    """A byte-level tokenizer, with `template` in its tokenizer_config.json; `config` are further entries of that."""
    folder.mkdir(parents=True, exist_ok=True)
    backend = tokenizers.Tokenizer(tokenizers.models.BPE())
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=SPECIAL,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(TEXTS * 3, trainer)
    backend.add_tokens([tokenizers.AddedToken("<think>", special=False), tokenizers.AddedToken("</think>")])
    begin = tokenizers.processors.TemplateProcessing(
        single="<|begin|> $A", pair="<|begin|> $A $B", special_tokens=[("<|begin|>", backend.token_to_id("<|begin|>"))]
    )
    byte_level = tokenizers.processors.ByteLevel(trim_offsets=trim_offsets)
    backend.post_processor = tokenizers.processors.Sequence([byte_level, begin])
    backend.save(str(folder / "tokenizer.json"))
    entries = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<|begin|>",
        "eos_token": {
            "__type": "AddedToken",
            "content": "<|im_end|>",
            "special": True,
            "lstrip": False,
            "rstrip": False,
        },
        "pad_token": "<|endoftext|>",
        **config,
    }
    if template is not None:
        _ = jinja2.Environment  # what is written here is rendered: a test without Jinja is skipped
        entries["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(entries))
    return folder
