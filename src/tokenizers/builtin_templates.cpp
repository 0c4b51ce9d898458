// Chat templates that Liuli knows by name.
#include "tokenizers/chat_template.h"

namespace liuli {
namespace {

constexpr const char* kChatml = R"({%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\n' -}}
{%- endif -%})";

constexpr const char* kLlama3 = R"({{- bos_token -}}
{%- for message in messages -%}
{{- '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' + message.content | trim + '<|eot_id|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' -}}
{%- endif -%})";

// Gemma has no system turn: its text goes before the first user's.
constexpr const char* kGemma = R"({{- bos_token -}}
{%- set prefix = '' -%}
{%- set turns = messages -%}
{%- if messages and messages[0].role == 'system' -%}
{%- set prefix = messages[0].content + '\n\n' -%}
{%- set turns = messages[1:] -%}
{%- endif -%}
{%- for message in turns -%}
{%- set role = 'model' if message.role == 'assistant' else message.role -%}
{{- '<start_of_turn>' + role + '\n' + (prefix if loop.first else '') + message.content | trim + '<end_of_turn>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<start_of_turn>model\n' -}}
{%- endif -%})";

// No control tokens: for base models, and for reading.
constexpr const char* kPlain = R"({%- for message in messages -%}
{{- message.role + ': ' + message.content + '\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- 'assistant:' -}}
{%- endif -%})";

}  // namespace

const char* builtin_chat_template(std::string_view name) {
  if (name == "chatml") return kChatml;
  if (name == "llama3") return kLlama3;
  if (name == "gemma") return kGemma;
  if (name == "plain") return kPlain;
  return nullptr;
}

}  // namespace liuli
