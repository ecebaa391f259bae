// zod schemas of any copy and version (3, 4) as JSON schemas: their own structure is read, so that no zod is needed here.

/** Return the JSON schema of a tool's `args`: an object of zod schemas, or of JSON schemas. */
export function parametersOf(args = {}) {
  if (definitionOf(args)) return schemaOf(args)
  const required = Object.keys(args).filter((name) => !isOptional(args[name]))
  const properties = Object.fromEntries(Object.entries(args).map(([name, value]) => [name, schemaOf(value)]))
  return { type: "object", properties, ...(required.length ? { required } : {}) }
}

/** Check arguments with the schemas themselves, which fills defaults in; a wrong one is an error that names it. */
export async function checkArguments(args = {}, given) {
  if (definitionOf(args)) return parse(args, given)
  const checked = { ...given }
  const wrong = []
  const issues = []
  for (const [name, schema] of Object.entries(args)) {
    try {
      // Models say `null` for what they leave out.
      if (given[name] === null && isOptional(schema)) delete checked[name]
      const value = await parse(schema, checked[name], name)
      if (value !== undefined) checked[name] = value
    } catch (error) {
      wrong.push(error.message)
      issues.push(...(error.issues ?? []))
    }
  }
  if (wrong.length) throw Object.assign(new Error(wrong.join("; ")), { kind: "invalid", issues, errors: issues })
  return checked
}

async function parse(schema, value, ...names) {
  if (typeof schema?.safeParseAsync !== "function") return value
  const outcome = await schema.safeParseAsync(value)
  if (outcome.success) return outcome.data
  const issues = outcome.error.issues.map((issue) => ({ ...issue, path: [...names, ...issue.path] }))
  const told = issues.map(({ path, message }) => `${path.join(".") || "arguments"}: ${message}`)
  throw Object.assign(new Error(told.join("; ")), { kind: "invalid", issues, errors: issues })
}

const definitionOf = (schema) => schema?._zod?.def ?? schema?._def

function kindOf(definition) {
  const kind = definition.type && typeof definition.type === "string" ? definition.type : definition.typeName
  return (kind ?? "").replace(/^Zod/, "").toLowerCase()
}

const OPTIONAL = new Set(["optional", "default", "prefault", "catch", "undefined"])
const WRAPPERS = new Set(["nullable", "readonly", "nonoptional", "branded", "effects", "lazy"])

function isOptional(schema) {
  const definition = definitionOf(schema)
  if (!definition) return false
  const kind = kindOf(definition)
  if (OPTIONAL.has(kind)) return true
  if (kind === "nonoptional") return false
  return WRAPPERS.has(kind) && kind !== "lazy" && isOptional(definition.innerType ?? definition.schema ?? definition.type)
}

/** Return the JSON schema of one schema; what JSON has no word for is left open. */
export function schemaOf(schema, depth = 0) {
  const definition = definitionOf(schema)
  if (!definition) return isPlain(schema) ? schema : {}
  if (depth > 20) return {}
  const made = MADE_BY[kindOf(definition)]?.(definition, depth + 1, schema) ?? {}
  const description = schema.description ?? definition.description
  const { id: _, ...meta } = (typeof schema.meta === "function" && schema.meta()) || {}
  return { ...made, ...meta, ...(description ? { description } : {}) }
}

const isPlain = (schema) => schema !== null && typeof schema === "object" && !Array.isArray(schema)

const inner = (definition, depth) => schemaOf(definition.innerType ?? definition.schema, depth)
const plain = (type) => (definition) => ({ type, ...limitsOf(definition) })
const values = (definition) => Object.values(definition.entries ?? definition.values ?? [])
const anyOf = (definition, depth) => {
  const options = [...(definition.options?.values?.() ?? definition.options ?? [])]
  return { anyOf: options.map((option) => schemaOf(option, depth)) }
}

function enumeration(all) {
  const types = new Set(all.map((value) => (value === null ? "null" : typeof value)))
  const [type] = types.size === 1 ? types : []
  return all.length === 1 ? { ...(type ? { type } : {}), const: all[0] } : { ...(type ? { type } : {}), enum: all }
}

function object(definition, depth) {
  const shape = typeof definition.shape === "function" ? definition.shape() : definition.shape
  const required = Object.keys(shape).filter((name) => !isOptional(shape[name]))
  const rest = definition.catchall && schemaOf(definition.catchall, depth)
  const forbids = definition.unknownKeys ?? kindOf(definitionOf(definition.catchall) ?? {})
  const strict = forbids === "strict" || forbids === "never"
  return {
    type: "object",
    properties: Object.fromEntries(Object.entries(shape).map(([name, value]) => [name, schemaOf(value, depth)])),
    ...(required.length ? { required } : {}),
    ...(strict ? { additionalProperties: false } : rest && !rest.not && Object.keys(rest).length ? { additionalProperties: rest } : {}),
  }
}

const MADE_BY = {
  string: plain("string"),
  number: plain("number"),
  int: plain("integer"),
  bigint: plain("integer"),
  boolean: () => ({ type: "boolean" }),
  date: () => ({ type: "string", format: "date-time" }),
  null: () => ({ type: "null" }),
  never: () => ({ not: {} }),
  enum: (definition) => {
    const all = values(definition)
    return enumeration(all.some((value) => typeof value === "number") ? all.filter((value) => typeof value === "number") : all)
  },
  nativeenum: (definition) => MADE_BY.enum(definition),
  literal: (definition) => enumeration(definition.values ? [...definition.values] : [definition.value]),
  array: (definition, depth) => {
    const element = definition.element ?? definition.type
    return { type: "array", items: schemaOf(element, depth), ...limitsOf(definition, "Items") }
  },
  set: (definition, depth) => ({ type: "array", items: schemaOf(definition.valueType, depth), uniqueItems: true }),
  tuple: (definition, depth) => ({
    type: "array",
    prefixItems: definition.items.map((item) => schemaOf(item, depth)),
    items: definition.rest ? schemaOf(definition.rest, depth) : false,
  }),
  object,
  record: (definition, depth) => ({ type: "object", additionalProperties: schemaOf(definition.valueType, depth) }),
  union: anyOf,
  discriminatedunion: anyOf,
  intersection: (definition, depth) => ({ allOf: [schemaOf(definition.left, depth), schemaOf(definition.right, depth)] }),
  nullable: (definition, depth) => ({ anyOf: [inner(definition, depth), { type: "null" }] }),
  default: (definition, depth) => {
    const value = typeof definition.defaultValue === "function" ? definition.defaultValue() : definition.defaultValue
    return { ...inner(definition, depth), default: value }
  },
  lazy: (definition, depth) => schemaOf(definition.getter(), depth),
  pipe: (definition, depth) => schemaOf(kindOf(definitionOf(definition.in)) === "transform" ? definition.out : definition.in, depth),
  pipeline: (definition, depth) => schemaOf(definition.in, depth),
  branded: (definition, depth) => schemaOf(definition.type, depth),
}
for (const kind of ["optional", "prefault", "catch", "readonly", "nonoptional", "effects"]) MADE_BY[kind] = inner

const FORMATS = new Map([
  ["email", "email"],
  ["url", "uri"],
  ["uuid", "uuid"],
  ["guid", "uuid"],
  ["datetime", "date-time"],
  ["date", "date"],
  ["time", "time"],
  ["duration", "duration"],
  ["ipv4", "ipv4"],
  ["ipv6", "ipv6"],
])

/** Return the bounds and formats that the checks of a string, number or array stand for. */
function limitsOf(definition, unit = "Length") {
  const found = {}
  // zod 4 has the checks of a format as its own definition, zod 3 keeps an array's bounds beside its type
  const checks = [definition, ...(definition.checks ?? [])].map((check) => definitionOf(check) ?? check)
  for (const side of ["min", "max"]) if (definition[`${side}Length`]?.value !== undefined) found[side + unit] = definition[`${side}Length`].value
  for (const check of checks) {
    const kind = check.check ?? check.kind
    if (kind === "min_length") found[`min${unit}`] = check.minimum
    else if (kind === "max_length") found[`max${unit}`] = check.maximum
    else if (kind === "length_equals") found[`min${unit}`] = found[`max${unit}`] = check.length
    else if (kind === "greater_than") found[check.inclusive ? "minimum" : "exclusiveMinimum"] = Number(check.value)
    else if (kind === "less_than") found[check.inclusive ? "maximum" : "exclusiveMaximum"] = Number(check.value)
    else if (kind === "multiple_of" || kind === "multipleOf") found.multipleOf = Number(check.value)
    else if (kind === "number_format" && /int/.test(check.format)) found.type = "integer"
    else if (kind === "int") found.type = "integer"
    else if (kind === "min") Object.assign(found, bound("min", definition, unit, check))
    else if (kind === "max") Object.assign(found, bound("max", definition, unit, check))
    else if (kind === "regex" || (kind === "string_format" && check.format === "regex")) found.pattern = (check.pattern ?? check.regex).source
    const format = FORMATS.get(kind === "string_format" ? check.format : kind)
    if (format) found.format = format
  }
  return found
}

function bound(side, definition, unit, check) {
  if (kindOf(definition) === "string") return { [side + unit]: check.value }
  return { [check.inclusive ? `${side}imum` : side === "min" ? "exclusiveMinimum" : "exclusiveMaximum"]: check.value }
}
