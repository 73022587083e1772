"""transformers' architectures of text: encoders, decoders, both, state spaces; two narrow layers each."""

import torch
import transformers

from torch_parts import Only

WORDS = 200
TINY = {"vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
        "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
GPT = {"vocab_size": WORDS, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "bos_token_id": 1, "eos_token_id": 2}
GROUPED = {"num_key_value_heads": 2}
EXPERTS = GROUPED | {"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
                     "shared_expert_intermediate_size": 32, "experts_implementation": "eager"}
PAIR = {"vocab_size": WORDS, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 64,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
T5 = {"vocab_size": WORDS, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}


def built(name, model, small):
    """A model of transformers by its prefix, its head's class and its configuration, less what is None there."""
    kind = getattr(transformers, name + model)
    return kind(kind.config_class(**{key: value for key, value in small.items() if value is not None}))


def encoder(name, model="Model", length=12, mask=True, **more):
    """Two texts, one shorter than the other."""
    def build():
        net = built(name, model, TINY | more)
        tokens = torch.randint(3, WORDS, (2, length))
        inputs = {"input_ids": tokens}
        if mask:
            inputs["attention_mask"] = torch.ones_like(tokens)
            inputs["attention_mask"][1, length - 3:] = 0
        return Only(net, names=tuple(inputs)), inputs, dict.fromkeys(inputs, {0: "batch", 1: "sequence"})
    return build


def causal(name, model="ForCausalLM", base=TINY, **more):
    """The logits of one text, without a past. Without a mask, transformers would look for texts packed into one."""
    def build():
        net = built(name, model, base | {"use_cache": False, "attn_implementation": "eager"} | more)
        tokens = torch.randint(3, WORDS, (1, 9))
        inputs = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
        return Only(net, names=tuple(inputs)), inputs, dict.fromkeys(inputs, {1: "sequence"})
    return build


def pair(name, model="ForConditionalGeneration", base=PAIR, **more):
    """The logits of a text that begins, of another that is given."""
    def build():
        net = built(name, model, base | {"use_cache": False, "attn_implementation": "eager"} | more)
        inputs = {"input_ids": torch.randint(3, WORDS, (1, 11)), "decoder_input_ids": torch.randint(3, WORDS, (1, 5))}
        return (Only(net, lambda found: found.logits, tuple(inputs)), inputs,
                {"input_ids": {1: "sequence"}, "decoder_input_ids": {1: "target"}})
    return build


# name: gives (module, its inputs, {input: {axis: name of an extent that may vary}})
ZOO = {
    "bert": encoder("Bert", "ForSequenceClassification"),
    "distilbert": encoder("DistilBert", dim=32, hidden_dim=64, n_layers=2, n_heads=4),
    "albert": encoder("Albert", embedding_size=16),
    "roberta": encoder("Roberta", "ForTokenClassification"),
    "camembert": encoder("Camembert", "ForMaskedLM"),
    "xlm_roberta": encoder("XLMRoberta", "ForQuestionAnswering"),
    "roberta_prelayernorm": encoder("RobertaPreLayerNorm"),
    "electra": encoder("Electra", embedding_size=16),
    "deberta": encoder("Deberta", relative_attention=True, pos_att_type=["p2c", "c2p"], max_relative_positions=16),
    "deberta_v2": encoder("DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"], max_relative_positions=16,
                          position_buckets=8, share_att_key=True, norm_rel_ebd="layer_norm"),
    "mpnet": encoder("MPNet"),
    "mobilebert": encoder("MobileBert", embedding_size=16, intra_bottleneck_size=16, true_hidden_size=16),
    "squeezebert": encoder("SqueezeBert", embedding_size=32),
    "convbert": encoder("ConvBert", embedding_size=32, conv_kernel_size=3),
    "xlm": encoder("XLM", emb_dim=32, n_layers=2, n_heads=4, n_words=WORDS),
    "flaubert": encoder("Flaubert", emb_dim=32, n_layers=2, n_heads=4, n_words=WORDS),
    "xlnet": encoder("XLNet", max_position_embeddings=None, d_model=32, n_layer=2, n_head=4, d_inner=64),
    "fnet": encoder("FNet", mask=False),
    "funnel": encoder("Funnel", length=16, num_hidden_layers=None, d_model=32, n_head=4, d_head=8, d_inner=64, block_sizes=[1, 1]),
    "longformer": encoder("Longformer", length=16, attention_window=8),
    "big_bird": encoder("BigBird", attention_type="original_full"),
    "big_bird_sparse": encoder("BigBird", length=64, mask=False, attention_type="block_sparse", block_size=8, num_random_blocks=1),
    "nystromformer": encoder("Nystromformer", mask=False, num_landmarks=4, segment_means_seq_len=12),
    "yoso": encoder("Yoso", use_expectation=True),
    "canine": encoder("Canine", length=32, downsampling_rate=4, num_hash_buckets=64, local_transformer_stride=16),
    "ibert": encoder("IBert", quant_mode=False),
    "rembert": encoder("RemBert", input_embedding_size=16, output_embedding_size=16),
    "roformer": encoder("RoFormer", embedding_size=32),
    "ernie": encoder("Ernie"),
    "luke": encoder("Luke", entity_vocab_size=20, entity_emb_size=16),
    "esm": encoder("Esm", position_embedding_type="rotary", token_dropout=False, mask_token_id=5),
    "splinter": encoder("Splinter"),
    "modernbert": encoder("ModernBert", attn_implementation="eager", local_attention=4, cls_token_id=1, sep_token_id=2),
    "nomic_bert": encoder("NomicBert"),
    "layoutlm": encoder("LayoutLM"),
    "megatron_bert": encoder("MegatronBert"),
    "xmod": encoder("Xmod", languages=["en_XX"], default_language="en_XX", adapter_reduction_factor=2),
    "data2vec_text": encoder("Data2VecText"),
    "reformer": encoder("Reformer", length=16, mask=False, attn_layers=["local", "local"], attention_head_size=8,
                        axial_pos_shape=(4, 4), axial_pos_embds_dim=(16, 16), feed_forward_size=64, local_attn_chunk_length=4),
    "dpr": encoder("DPR", "ContextEncoder"),
    "bert_generation": encoder("BertGeneration", "Encoder"),
    "gpt2": causal("GPT2", "LMHeadModel", GPT),
    "openai_gpt": causal("OpenAIGPT", "LMHeadModel", GPT),
    "ctrl": causal("CTRL", "LMHeadModel", GPT | {"dff": 64}),
    "gptj": causal("GPTJ", base=GPT, rotary_dim=4),
    "codegen": causal("CodeGen", base=GPT, rotary_dim=4),
    "gpt_bigcode": causal("GPTBigCode", base=GPT),
    "gpt_neo": causal("GPTNeo", num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]], window_size=4),
    "gpt_neox": causal("GPTNeoX", rotary_pct=0.5),
    "opt": causal("OPT", ffn_dim=64, word_embed_proj_dim=32),
    "bloom": causal("Bloom", n_layer=2, n_head=4),
    "mpt": causal("Mpt", d_model=32, n_layers=2, n_heads=4, max_seq_len=64),
    "biogpt": causal("BioGpt"),
    "xglm": causal("XGLM", d_model=32, num_layers=2, attention_heads=4, ffn_dim=64),
    "llama": causal("Llama", **GROUPED),
    "mistral": causal("Mistral", **GROUPED, sliding_window=4),
    "mixtral": causal("Mixtral", **EXPERTS),
    "qwen2": causal("Qwen2", **GROUPED),
    "qwen2_moe": causal("Qwen2Moe", **EXPERTS),
    "qwen3": causal("Qwen3", **GROUPED, head_dim=8),
    "qwen3_moe": causal("Qwen3Moe", **EXPERTS, head_dim=8),
    "qwen3_next": causal("Qwen3Next", **EXPERTS, head_dim=8, linear_num_key_heads=2, linear_num_value_heads=4,
                         linear_key_head_dim=8, linear_value_head_dim=8, layer_types=["linear_attention", "full_attention"]),
    "gemma": causal("Gemma", **GROUPED, head_dim=8),
    "gemma2": causal("Gemma2", **GROUPED, head_dim=8, sliding_window=4),
    "gemma3": causal("Gemma3", "ForCausalLM", **GROUPED, head_dim=8, sliding_window=4),
    "phi": causal("Phi"),
    "phi3": causal("Phi3", **GROUPED),
    "falcon": causal("Falcon", multi_query=True, alibi=False),
    "stablelm": causal("StableLm", **GROUPED),
    "starcoder2": causal("Starcoder2", **GROUPED),
    "persimmon": causal("Persimmon"),
    "olmo": causal("Olmo", **GROUPED),
    "olmo2": causal("Olmo2", **GROUPED),
    "olmoe": causal("Olmoe", **EXPERTS),
    "cohere": causal("Cohere", **GROUPED),
    "cohere2": causal("Cohere2", **GROUPED, sliding_window=4),
    "granite": causal("Granite", **GROUPED),
    "granitemoe": causal("GraniteMoe", **EXPERTS),
    "glm": causal("Glm", **GROUPED, head_dim=8),
    "glm4": causal("Glm4", **GROUPED, head_dim=8),
    "helium": causal("Helium", **GROUPED, head_dim=8),
    "nemotron": causal("Nemotron", **GROUPED),
    "smollm3": causal("SmolLM3", **GROUPED),
    "arcee": causal("Arcee", **GROUPED),
    "apertus": causal("Apertus", **GROUPED),
    "exaone4": causal("Exaone4", **GROUPED, sliding_window=4),
    "ernie4_5": causal("Ernie4_5", **GROUPED),
    "seed_oss": causal("SeedOss", **GROUPED, head_dim=8),
    "hunyuan": causal("HunYuanDenseV1", **GROUPED, head_dim=8),
    "diffllama": causal("DiffLlama", **GROUPED),
    "bitnet": causal("BitNet", **GROUPED),
    "gpt_oss": causal("GptOss", **EXPERTS, head_dim=8, sliding_window=4),
    "deepseek_v3": causal("DeepseekV3", **EXPERTS | {"num_key_value_heads": 4}, n_routed_experts=4, n_group=2, topk_group=1,
                          kv_lora_rank=8, q_lora_rank=8, qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=8, head_dim=4,
                          first_k_dense_replace=1),
    "lfm2": causal("Lfm2", **GROUPED, layer_types=["conv", "full_attention"], block_ff_dim=64, conv_L_cache=3),
    "mamba": causal("Mamba", state_size=8, time_step_rank=4),
    "mamba2": causal("Mamba2", state_size=8, num_heads=8, head_dim=8, n_groups=2, chunk_size=4),
    "falcon_mamba": causal("FalconMamba", state_size=8, time_step_rank=4),
    "jamba": causal("Jamba", **EXPERTS, mamba_d_state=8, mamba_dt_rank=4, use_mamba_kernels=False, attn_layer_period=2,
                    attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1),
    "bamba": causal("Bamba", **GROUPED, attn_layer_indices=[1], mamba_n_heads=8, mamba_d_head=8, mamba_d_state=8, mamba_chunk_size=4),
    "recurrent_gemma": causal("RecurrentGemma", **GROUPED, lru_width=32, attention_window_size=4, head_dim=8,
                              block_types=["recurrent", "attention"]),
    "rwkv": causal("Rwkv", attention_hidden_size=32, context_length=64),
    "t5": pair("T5", base=T5),
    "t5_gated": pair("T5", base=T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    "umt5": pair("UMT5", base=T5),
    "switch_transformers": pair("SwitchTransformers", base=T5 | {"num_experts": 4, "num_sparse_encoder_layers": 1,
                                                                 "num_sparse_decoder_layers": 1}),
    "longt5": pair("LongT5", base=T5 | {"local_radius": 4}),
    "bart": pair("Bart"),
    "mbart": pair("MBart"),
    "marian": pair("Marian", "MTModel"),
    "pegasus": pair("Pegasus"),
    "blenderbot": pair("Blenderbot"),
    "m2m_100": pair("M2M100"),
    "plbart": pair("PLBart"),
    "led": pair("LED", attention_window=8, max_encoder_position_embeddings=64, max_decoder_position_embeddings=64),
    "prophetnet": pair("ProphetNet", num_hidden_layers=None, encoder_layers=None, decoder_layers=None, hidden_size=32,
                       num_encoder_layers=2, num_decoder_layers=2, num_encoder_attention_heads=4,
                       num_decoder_attention_heads=4),
    "fsmt": pair("FSMT", langs=["en", "de"], src_vocab_size=WORDS, tgt_vocab_size=WORDS),
}
