"""The public names that people meet first: `help()` of each says what every argument is and what is returned."""

from __future__ import annotations

_BY_FAMILY = """
    tensor asarray zeros ones full empty zeros_like ones_like full_like arange linspace eye meshgrid astype
    abs exp log sqrt square pow clip maximum minimum sin cos tanh round where
    sum mean max min prod std var median any all argmax argmin cumulative_sum logsumexp
    reshape transpose permute_dims concat stack split squeeze expand_dims broadcast_to flip roll pad repeat tile
    moveaxis ravel unstack diff tril triu
    take take_along_axis scatter_add index_add nonzero sort argsort topk searchsorted
    matmul einsum dot outer tensordot linear matrix_transpose
    relu leaky_relu elu gelu silu sigmoid softplus softmax log_softmax
    cross_entropy binary_cross_entropy_with_logits mse_loss l1_loss huber_loss
    conv1d conv2d conv_transpose2d max_pool2d avg_pool2d interpolate layer_norm rms_norm batch_norm group_norm
    normalize dropout embedding scaled_dot_product_attention rotary_embedding
    backward Gradients grad value_and_grad jvp vjp jacrev jacfwd hessian hvp vmap gradcheck stop_gradient
    straight_through
    per_example_grad per_example_norms custom_op no_grad enable_grad guard
    checkpoint checkpointing BudgetCheckpointing compile autocast
    cond scan while_loop associative_scan ssm_scan
    save load device set_default_device set_default_dtype
    from_torch to_torch from_jax to_jax quantize Autodiff GradientTape Mlp

    Tensor.backward Tensor.item Tensor.numpy Tensor.tolist Tensor.clone Tensor.copy Tensor.detach Tensor.data_mut
    Tensor.set_requires_grad Tensor.register_hook Tensor.to_device Tensor.reshape Tensor.std Tensor.var
    Gradients.clip_global_norm Mlp.fit Mlp.predict GradientTape.gradient

    nn.Module nn.Parameter nn.Sequential nn.Linear nn.Embedding nn.Conv1d nn.Conv2d nn.ConvTranspose2d nn.MaxPool2d
    nn.AvgPool2d nn.LayerNorm nn.RMSNorm nn.BatchNorm1d nn.BatchNorm2d nn.GroupNorm nn.Dropout nn.Flatten nn.GELU
    nn.RNN nn.GRU nn.LSTM nn.MultiheadAttention nn.TransformerEncoderLayer nn.TransformerEncoder nn.CrossEntropyLoss
    nn.MSELoss nn.Mamba nn.functional_call nn.project nn.Module.state_dict nn.Module.load_state_dict
    nn.Module.to_device nn.Module.astype nn.Module.train nn.Module.freeze nn.Module.named_parameters

    optim.SGD optim.Adam optim.AdamW optim.RMSprop optim.Lion optim.Muon optim.LBFGS optim.Scheduler
    optim.LossScaler optim.ExponentialMovingAverage optim.Accumulation optim.clip_global_norm optim.clip_value
    optim.Optimizer.step optim.schedules.Constant optim.schedules.Cosine optim.schedules.Linear
    optim.schedules.Exponential optim.schedules.Step optim.schedules.OneCycle optim.schedules.Plateau

    data.ArrayDataset data.Batches data.TextWindows data.random_split
    train.Trainer train.Trainer.fit train.Trainer.evaluate train.EarlyStopping train.Progress train.Report
    train.JsonLines train.read_log

    random.seed random.uniform random.normal random.integers random.bernoulli random.permutation random.Generator
    linalg.solve linalg.inv linalg.det linalg.cholesky linalg.svd linalg.qr linalg.eig linalg.vector_norm

    tree.map tree.flatten tree.leaves tree.unflatten
    models.load models.save models.qwen3 models.Generation
    peft.LoraConfig peft.add_lora peft.save_adapter peft.load_adapter peft.merge peft.unmerge peft.remove
    quant.quantize quant.dequantize quant.prepare quant.fake_quantize quant.deviations
"""
FIRST_NAMES = _BY_FAMILY.split()
