"""A user's own model: from the `config.json` of a Hugging Face model to an entry of the catalogue.

A field that is neither read nor known to leave the shape alone is refused by name: a wrong count is worse than none.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pipeline.catalogue_load import load_model
from pipeline.catalogue_schema import ModelShape
from pipeline.errors import UserError

PLAIN = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text")
MIXTURES = ("mixtral", "qwen2_moe", "qwen3_moe")
LATENT = ("deepseek_v2", "deepseek_v3")
FAMILIES = (*PLAIN, *MIXTURES, *LATENT, "gpt2", "gpt_neox")
TIED_BY_DEFAULT = ("gemma", "gemma2", "gemma3_text", "gpt2")
GATES = {"silu": "swiglu", "swish": "swiglu"} | dict.fromkeys(("gelu", "gelu_new", "gelu_pytorch_tanh"), "geglu")
HARMLESS = frozenset(  # fields that do not change the number of weights or of operations
    """
    _name_or_path architectures attention_bias attention_dropout attn_logit_softcapping attn_pdrop auto_map
    aux_loss_alpha bos_token_id cache_implementation classifier_dropout dtype embd_pdrop eos_token_id ep_size
    final_logit_softcapping hidden_dropout initializer_range layer_norm_eps layer_norm_epsilon layer_types
    max_position_embeddings max_window_layers mlp_bias model_type n_ctx n_group norm_topk_prob
    num_nextn_predict_layers output_router_logits pad_token_id partial_rotary_factor pretraining_tp
    qk_head_dim quantization_config query_pre_attn_scalar reorder_and_upcast_attn resid_pdrop rms_norm_eps
    rope_interleave rope_local_base_freq rope_parameters rope_scaling rope_theta rotary_emb_base rotary_pct
    routed_scaling_factor router_aux_loss_coef router_jitter_noise scale_attn_by_inverse_layer_idx
    scale_attn_weights scoring_func seq_aux sliding_window sliding_window_pattern sliding_window_size
    summary_activation summary_first_dropout summary_proj_to_labels summary_type summary_use_proj
    task_specific_params topk_group topk_method torch_dtype transformers_version use_bidirectional_attention
    use_cache use_mrope use_parallel_residual use_sliding_window attention_probs_dropout_prob
    """.split()
)


class Fields:
    """The fields of a config, remembering which were read."""

    def __init__(self, mapping: Mapping[str, Any], file: str) -> None:
        """Hold the mapping of a file."""
        self.mapping, self.file, self.read = mapping, file, set[str]()

    def number(self, name: str, default: float | None = None) -> float:
        """Return a positive or zero number; the default stands for a field that is absent or null."""
        self.read.add(name)
        value = self.mapping.get(name)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise UserError(f"{self.file}: {name} = {value!r}: must be a number >= 0; it is needed for the shape")
        return float(value)

    def flag(self, name: str, default: bool) -> float:
        """Return 1 or 0."""
        self.read.add(name)
        value = self.mapping.get(name)
        if value is not None and not isinstance(value, bool):
            raise UserError(f"{self.file}: {name} = {value!r}: must be true or false; correct it")
        return float(default if value is None else value)

    def must_be(self, name: str, allowed: object, why: str) -> None:
        """Refuse a field with another value than the one that is understood."""
        self.read.add(name)
        if self.mapping.get(name, allowed) != allowed:
            raise UserError(f"{self.file}: {name} = {self.mapping[name]!r}: only {allowed!r} can be read; {why}")

    def word(self, *names: str) -> str:
        """Return the first of several fields that is given."""
        self.read |= set(names)
        return next((str(self.mapping[name]) for name in names if self.mapping.get(name)), "")


def import_config(mapping: Mapping[str, Any], file: str, ignored: Iterable[str] = ()) -> dict[str, Any]:
    """Return the entry of a model (keys of conf/model) read from a Hugging Face config."""
    family = str(mapping.get("model_type"))
    if family not in FAMILIES:
        known = ", ".join(FAMILIES)
        hint = "give the text_config alone" if "text_config" in mapping else "write conf/model by hand"
        raise UserError(f"{file}: model_type = {family!r}: not a family that can be read ({known}); {hint}")
    fields = Fields(mapping, file)
    if family == "gpt2":
        shape = _gpt2(fields)
    elif family == "gpt_neox":
        shape = {**_common(fields), **_heads(fields), "ffn_kind": "gelu", "has_bias": 1.0}
        fields.word("hidden_act")
    elif family in LATENT:
        shape = {**_common(fields), **_latent(fields), **_gate(fields), **_deepseek_experts(fields)}
    else:
        shape = {**_common(fields), **_heads(fields), **_gate(fields)}
        shape |= _experts(fields, family) if family in MIXTURES else {}
    shape["tied_embeddings"] = fields.flag("tie_word_embeddings", family in TIED_BY_DEFAULT)
    unread = sorted(set(mapping) - fields.read - HARMLESS - set(ignored))
    if unread:
        name = unread[0]
        raise UserError(
            f"{file}: {name} = {mapping[name]!r}: unknown to the {family} family, it may change the shape; "
            f"if it does not, pass --ignore {name}"
        )
    return {"kind": "shape", **shape}


def _common(fields: Fields) -> dict[str, Any]:
    return {
        "layer_count": fields.number("num_hidden_layers"),
        "d_model": fields.number("hidden_size"),
        "d_ff": fields.number("intermediate_size"),
        "vocabulary": fields.number("vocab_size"),
        "sequence_token": fields.number("max_position_embeddings", 2048.0),
    }


def _heads(fields: Fields) -> dict[str, Any]:
    heads = fields.number("num_attention_heads")
    kv_heads = fields.number("num_key_value_heads", heads)
    gemma = str(fields.mapping.get("model_type")).startswith("gemma")
    head_dim = fields.number("head_dim", 256.0 if gemma else fields.number("hidden_size") / heads)
    kind = "mha" if kv_heads == heads else "mqa" if kv_heads == 1 else "gqa"
    return {"head_count": heads, "head_dim": head_dim, "kv_head_count": kv_heads, "attention_kind": kind}


def _gate(fields: Fields) -> dict[str, Any]:
    activation = fields.word("hidden_activation", "hidden_act") or "silu"
    if activation not in GATES:
        raise UserError(f"{fields.file}: hidden_act = {activation!r}: only {', '.join(GATES)} can be read; correct it")
    return {"ffn_kind": GATES[activation]}


def _experts(fields: Fields, family: str) -> dict[str, Any]:
    found: dict[str, Any] = {"expert_top_k": fields.number("num_experts_per_tok")}
    if family == "mixtral":
        width = fields.number("intermediate_size")
        return found | {
            "expert_count": fields.number("num_local_experts"),
            "expert_d_ff": width,
            "dense_layer_count": 0.0,
        }
    fields.must_be("decoder_sparse_step", 1, "layers with and without experts in turn are not described")
    dense = fields.mapping.get("mlp_only_layers") or []
    fields.read.add("mlp_only_layers")
    width = fields.number("moe_intermediate_size")
    shared = fields.number("shared_expert_intermediate_size", 0.0) / width
    found |= {"expert_count": fields.number("num_experts"), "expert_d_ff": width}
    return found | {"shared_expert_count": shared, "dense_layer_count": float(len(dense))}


def _latent(fields: Fields) -> dict[str, Any]:
    heads = fields.number("num_attention_heads")
    fields.number("num_key_value_heads", heads)
    fields.read.add("head_dim")
    rope = fields.number("qk_rope_head_dim")
    return {
        "head_count": heads,
        "kv_head_count": heads,
        "head_dim": fields.number("qk_nope_head_dim") + rope,
        "attention_kind": "mla",
        "mla_query_rank": fields.number("q_lora_rank", 0.0),
        "mla_kv_rank": fields.number("kv_lora_rank"),
        "mla_rope_head_dim": rope,
        "mla_value_head_dim": fields.number("v_head_dim"),
    }


def _deepseek_experts(fields: Fields) -> dict[str, Any]:
    fields.must_be("moe_layer_freq", 1, "layers with and without experts in turn are not described")
    return {
        "expert_count": fields.number("n_routed_experts"),
        "expert_top_k": fields.number("num_experts_per_tok"),
        "shared_expert_count": fields.number("n_shared_experts", 0.0),
        "expert_d_ff": fields.number("moe_intermediate_size"),
        "dense_layer_count": fields.number("first_k_dense_replace", 0.0),
    }


def _gpt2(fields: Fields) -> dict[str, Any]:
    d_model, heads = fields.number("n_embd"), fields.number("n_head")
    positions = fields.number("n_positions", 1024.0)
    fields.word("activation_function")
    return {
        "layer_count": fields.number("n_layer"),
        "d_model": d_model,
        "d_ff": fields.number("n_inner", 4.0 * d_model),
        "head_count": heads,
        "head_dim": d_model / heads,
        "kv_head_count": heads,
        "attention_kind": "mha",
        "ffn_kind": "gelu",
        "vocabulary": fields.number("vocab_size"),
        "position_embedding_count": positions,
        "sequence_token": positions,
        "has_bias": 1.0,
    }


def read_config(path: Path) -> dict[str, Any]:
    """Return a config.json as a mapping."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read as JSON: {str(error).splitlines()[0]}; name a config.json") from error
    if not isinstance(content, dict):
        raise UserError(f"{path}: must be a JSON object, got {type(content).__name__}; name a config.json")
    return content


def entry_text(entry: Mapping[str, Any], name: str, title: str, file: str) -> str:
    """Return the YAML of an imported entry, ready for conf/model."""
    lines = [f"# @package model.{name}", f'name: "{title}"']
    for key, value in entry.items():
        lines.append(f"{key}: {f'{value:.15g}' if isinstance(value, float) else value}")
    lines.append("published: {}")
    lines.append(f'sources:\n  all: {{ref: huggingface_config, where: "{file}", kind: datasheet}}')
    return "\n".join(lines) + "\n"


def imported_model(entry: Mapping[str, Any], name: str, title: str) -> ModelShape:
    """Return an imported entry as a checked model."""
    return load_model({"name": title, **entry}, f"model/{name}.yaml")
