# packages: transformers
"""Models of Transformers: losses of some steps, saving and loading a folder of weights, and generated texts."""

import tempfile

import torch
import transformers as t
from harness import report, train

small = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=50)
tokens = torch.arange(24).reshape(2, 12) % 50
CAUSAL = {
    "gpt2": t.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=50, n_positions=64),
    "llama": t.LlamaConfig(**small), "mistral": t.MistralConfig(**small, num_key_value_heads=4),
    "qwen2": t.Qwen2Config(**small, num_key_value_heads=4),
    "gpt_neox": t.GPTNeoXConfig(**small), "opt": t.OPTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64, vocab_size=50, word_embed_proj_dim=32),
}  # fmt: skip
MASKED = {
    "bert": t.BertConfig(**small), "roberta": t.RobertaConfig(**small, pad_token_id=49),
    "distilbert": t.DistilBertConfig(dim=32, n_layers=2, n_heads=4, hidden_dim=64, vocab_size=50),
    "electra": t.ElectraConfig(**small, embedding_size=32),
}  # fmt: skip
for kind, configs in ((t.AutoModelForCausalLM, CAUSAL), (t.AutoModelForMaskedLM, MASKED)):
    for name, config in configs.items():
        torch.manual_seed(0)
        net = kind.from_config(config).eval()
        report(name, train(net, lambda: net(input_ids=tokens, labels=tokens).loss))
        with tempfile.TemporaryDirectory() as folder:
            net.save_pretrained(folder)
            again = kind.from_pretrained(folder).eval()
        report(f"{name} from a folder", again(input_ids=tokens).logits.sum())
        if kind is t.AutoModelForCausalLM:
            written = again.generate(tokens[:, :4], max_new_tokens=6, do_sample=False, pad_token_id=0)
            report(f"{name} generates", written)
