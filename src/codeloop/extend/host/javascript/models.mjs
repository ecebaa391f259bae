// Models that a plugin lists for a provider (its `provider` hook), as the configuration names them.

/** Put the models that a plugin lists into a configuration: those, and no others of the provider. */
export async function addModels({ id, models }, config, client) {
  const before = config.provider?.[id] ?? {}
  const { data } = await client.config.providers()
  const known = data?.providers?.find((provider) => provider.id === id)
  const told = known ?? { id, name: before.name ?? id, source: "config", env: [], options: before.options ?? {}, models: {} }
  const listed = await models(told, {})
  if (!listed) return
  const [first] = Object.values(listed)
  config.provider = {
    ...config.provider,
    [id]: {
      ...before,
      npm: before.npm ?? first?.api?.npm,
      api: before.api ?? first?.api?.url,
      models: Object.fromEntries(Object.entries(listed).map(([name, model]) => [name, { ...configured(model), ...before.models?.[name] }])),
      whitelist: Object.keys(listed),
    },
  }
}

function configured({ api, name, capabilities = {}, cost, limit, options, headers, variants }) {
  const kinds = (held) => held && Object.keys(held).filter((kind) => held[kind])
  const [input, output] = [kinds(capabilities.input), kinds(capabilities.output)]
  return {
    id: api?.id,
    name,
    tool_call: capabilities.toolcall,
    reasoning: capabilities.reasoning,
    temperature: capabilities.temperature,
    attachment: capabilities.attachment,
    interleaved: capabilities.interleaved,
    ...(input && output ? { modalities: { input, output } } : {}),
    ...(limit ? { limit } : {}),
    ...(cost ? { cost: { input: cost.input, output: cost.output, cache_read: cost.cache?.read, cache_write: cost.cache?.write } } : {}),
    options,
    headers,
    variants,
  }
}
