// What `@opencode-ai/plugin` gives to an extension when it is not installed beside it: `tool`, and of `tool.schema` what
// tools use every day. The rest is an error that says which command installs the package itself.

const INSTALL = "Run `npm install @opencode-ai/plugin` in the folder of the extension."

export const tool = (definition) => definition

class Schema {
  constructor(definition, check) {
    this._def = definition
    this.check = check
  }

  get description() {
    return this._def.description
  }

  #with(definition, check) {
    return wrap(new Schema({ ...this._def, ...definition }, check ?? this.check))
  }

  describe = (description) => this.#with({ description })
  optional = () => this.#wrapped("ZodOptional", (value) => value === undefined)
  nullable = () => this.#wrapped("ZodNullable", (value) => value === null)
  nullish = () => this.nullable().optional()
  array = () => schema.array(wrap(this))
  or = (other) => schema.union([wrap(this), other])
  default(value) {
    const filled = (given) => this.check(given === undefined ? value : given)
    return wrap(new Schema({ typeName: "ZodDefault", innerType: wrap(this), defaultValue: () => value }, filled))
  }

  #wrapped(typeName, passes) {
    const check = (value) => (passes(value) ? value : this.check(value))
    return wrap(new Schema({ typeName, innerType: wrap(this), description: this.description }, check))
  }

  /** Add a check that a JSON schema names too. */
  #limited(row, message, holds) {
    const check = (value) => {
      const checked = this.check(value)
      return holds(checked) ? checked : fail(message)
    }
    return this.#with({ checks: [...(this._def.checks ?? []), row] }, check)
  }

  #size = (value) => (typeof value === "number" ? value : value.length)
  min = (value) => this.#limited(this.#row("min", value), `must be at least ${value}`, (given) => this.#size(given) >= value)
  max = (value) => this.#limited(this.#row("max", value), `must be at most ${value}`, (given) => this.#size(given) <= value)
  length = (value) => this.min(value).max(value)
  nonempty = () => this.min(1)
  gte = (value) => this.min(value)
  lte = (value) => this.max(value)
  gt = (value) => this.#limited({ kind: "min", value, inclusive: false }, `must be over ${value}`, (given) => given > value)
  lt = (value) => this.#limited({ kind: "max", value, inclusive: false }, `must be under ${value}`, (given) => given < value)
  int = () => this.#limited({ kind: "int" }, "must be a whole number", Number.isInteger)
  positive = () => this.gt(0)
  nonnegative = () => this.min(0)
  regex = (regex) => this.#limited({ kind: "regex", regex }, `must match ${regex}`, (given) => given.search(regex) >= 0)
  email = () => this.#limited({ kind: "email" }, "must be an email address", (given) => /^\S+@\S+\.\S+$/.test(given))
  url = () => this.#limited({ kind: "url" }, "must be a URL", (given) => URL.canParse(given))
  uuid = () => this.#limited({ kind: "uuid" }, "must be a UUID", (given) => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(given))

  #row(kind, value) {
    if (this._def.typeName === "ZodArray") return { check: `${kind}_length`, [`${kind}imum`]: value }
    return { kind, value, inclusive: true }
  }

  parse = (value) => this.check(value)
  async safeParseAsync(value) {
    try {
      return { success: true, data: this.check(value) }
    } catch (error) {
      return { success: false, error: { issues: [{ path: error.path ?? [], message: error.message }] } }
    }
  }
}

function fail(message, path = []) {
  throw Object.assign(new Error(message), { path })
}

/** Let what is not here say so, instead of "is not a function". */
const wrap = (object, name = "a schema") =>
  new Proxy(object, {
    get(target, part) {
      if (typeof part === "symbol" || part in target || part === "then" || part.startsWith("_") || part === "meta") {
        const value = target[part]
        return typeof value === "function" ? value.bind(target) : value
      }
      throw new Error(`${name} has no \`${part}\` without the package @opencode-ai/plugin. ${INSTALL}`)
    },
  })

const simple = (typeName, expected, holds) => () =>
  wrap(new Schema({ typeName }, (value) => (holds(value) ? value : fail(`expected ${expected}, received ${value === undefined ? "nothing" : typeof value}`))))

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value)

function within(key, check) {
  try {
    return check()
  } catch (error) {
    return fail(error.message, [key, ...(error.path ?? [])])
  }
}

function object(shape) {
  const check = (value) => {
    if (!isObject(value)) fail("expected an object")
    const made = { ...value }
    for (const [name, part] of Object.entries(shape)) {
      const checked = within(name, () => part.parse(value[name]))
      if (checked !== undefined) made[name] = checked
    }
    return made
  }
  return wrap(new Schema({ typeName: "ZodObject", shape: () => shape }, check))
}

const schema = wrap(
  {
    string: simple("ZodString", "a string", (value) => typeof value === "string"),
    number: simple("ZodNumber", "a number", (value) => typeof value === "number"),
    boolean: simple("ZodBoolean", "true or false", (value) => typeof value === "boolean"),
    null: simple("ZodNull", "null", (value) => value === null),
    any: simple("ZodAny", "", () => true),
    unknown: simple("ZodUnknown", "", () => true),
    int: () => schema.number().int(),
    object,
    strictObject: object,
    literal: (value) => wrap(new Schema({ typeName: "ZodLiteral", value }, (given) => (given === value ? given : fail(`expected ${value}`)))),
    enum(values) {
      const all = Object.values(values)
      return wrap(new Schema({ typeName: "ZodEnum", values: all }, (given) => (all.includes(given) ? given : fail(`expected one of ${all.join(", ")}`))))
    },
    array(item) {
      const check = (value) => (Array.isArray(value) ? value.map((part, at) => within(at, () => item.parse(part))) : fail("expected an array"))
      return wrap(new Schema({ typeName: "ZodArray", type: item }, check))
    },
    record(...types) {
      const valueType = types.at(-1)
      const each = ([key, part]) => [key, within(key, () => valueType.parse(part))]
      const check = (value) => (isObject(value) ? Object.fromEntries(Object.entries(value).map(each)) : fail("expected an object"))
      return wrap(new Schema({ typeName: "ZodRecord", valueType }, check))
    },
    union(options) {
      const check = (value) => {
        for (const option of options) {
          try {
            return option.parse(value)
          } catch {
            continue
          }
        }
        return fail("is none of the allowed kinds")
      }
      return wrap(new Schema({ typeName: "ZodUnion", options }, check))
    },
  },
  "tool.schema",
)

tool.schema = schema
