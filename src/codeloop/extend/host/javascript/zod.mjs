// What `zod` gives to an extension when it is not installed beside it: the part that tools use. The structure of the
// schemas is that of zod 3, which `schema.mjs` reads. What is not here is an error that says what to install.

const INSTALL = "Run `npm install zod` in the folder of the extension."

export class ZodError extends Error {
  constructor(issues) {
    super(issues.map(({ path, message }) => [path.join("."), message].filter(Boolean).join(": ")).join("; "))
    this.name = "ZodError"
    this.issues = issues
  }

  get errors() {
    return this.issues
  }

  flatten() {
    const fieldErrors = {}
    for (const { path, message } of this.issues) if (path.length) (fieldErrors[path[0]] ??= []).push(message)
    return { formErrors: this.issues.filter(({ path }) => !path.length).map(({ message }) => message), fieldErrors }
  }
}

function fail(message, code = "custom") {
  throw new ZodError([{ code, path: [], message }])
}

const kindOf = (value) => (value === undefined ? "nothing" : value === null ? "null" : Number.isNaN(value) ? "what is none" : typeof value)
const expect = (expected, value) =>
  fail(`expected ${expected}, received ${kindOf(value)}`, "invalid_type")

/** Return what a check makes of each entry; the issues of all entries, with their keys, are one error. */
function checkEach(entries, check) {
  const made = []
  const issues = []
  for (const [key, value] of entries) {
    try {
      made.push([key, check(key, value)])
    } catch (error) {
      if (!(error instanceof ZodError)) throw error
      issues.push(...error.issues.map((issue) => ({ ...issue, path: [key, ...issue.path] })))
    }
  }
  if (issues.length) throw new ZodError(issues)
  return made
}

const textOf = (given, otherwise) => (typeof given === "string" ? given : (given?.message ?? given?.error ?? otherwise))
const sizeOf = (value) => (typeof value === "number" || typeof value === "bigint" ? value : value instanceof Date ? +value : value.length)

/** A schema: `_def` says what it is, `check` returns the value that a given one stands for, or throws a ZodError. */
class Schema {
  constructor(definition, check) {
    this._def = definition
    this.check = check
  }

  get description() {
    return this._def.description
  }

  get shape() {
    return this._def.shape?.()
  }

  get options() {
    return this._def.options ?? this._def.values
  }

  get enum() {
    return this._def.values && Object.fromEntries(this._def.values.map((value) => [value, value]))
  }

  get element() {
    return this._def.type
  }

  #with(definition, check = this.check) {
    return make({ ...this._def, ...definition }, check)
  }

  describe = (description) => this.#with({ description })
  meta = (given) => (given ? this.#with({ description: given.description ?? this.description, meta: { ...this._def.meta, ...given } }) : this._def.meta)
  brand = () => this.#with({})
  readonly = () => this.#with({})
  optional = () => this.#wrapped("ZodOptional", (value) => value === undefined)
  nullable = () => this.#wrapped("ZodNullable", (value) => value === null)
  nullish = () => this.nullable().optional()
  array = () => z.array(make(this._def, this.check))
  or = (other) => z.union([make(this._def, this.check), other])
  and = (other) => z.intersection(make(this._def, this.check), other)
  pipe = (next) => make({ typeName: "ZodPipeline", in: make(this._def, this.check), out: next }, (value) => next.parse(this.check(value)))
  unwrap = () => this._def.innerType

  default(value) {
    const filled = (given) => (given === undefined ? make(this._def, this.check).parse(typeof value === "function" ? value() : value) : this.check(given))
    return make({ typeName: "ZodDefault", innerType: make(this._def, this.check), defaultValue: () => (typeof value === "function" ? value() : value) }, filled)
  }

  prefault = (value) => this.default(value)

  catch(value) {
    const check = (given) => {
      try {
        return this.check(given)
      } catch (error) {
        if (!(error instanceof ZodError)) throw error
        return typeof value === "function" ? value({ error }) : value
      }
    }
    return make({ typeName: "ZodCatch", innerType: make(this._def, this.check) }, check)
  }

  transform(change) {
    return this.#effect((value) => synchronous(this.#issuesOf((context) => change(this.check(value), context))))
  }

  refine(holds, told) {
    return this.#effect((value) => {
      const checked = this.check(value)
      if (!synchronous(holds(checked))) throw new ZodError([{ code: "custom", path: told?.path ?? [], message: textOf(typeof told === "function" ? told(checked) : told, "is not valid") }])
      return checked
    })
  }

  superRefine(examine) {
    return this.#effect((value) => {
      const checked = this.check(value)
      synchronous(this.#issuesOf((context) => examine(checked, context)))
      return checked
    })
  }

  /** Call a function with the `ctx` of zod, to which it adds issues; those are thrown. */
  #issuesOf(work) {
    const issues = []
    const made = work({ addIssue: (issue) => issues.push({ code: "custom", path: [], message: "is not valid", ...(typeof issue === "string" ? { message: issue } : issue) }), path: [] })
    if (issues.length) throw new ZodError(issues)
    return made
  }

  #effect(check) {
    return make({ typeName: "ZodEffects", schema: make(this._def, this.check), description: this.description }, check)
  }

  #wrapped(typeName, passes) {
    const check = (value) => (passes(value) ? value : this.check(value))
    return make({ typeName, innerType: make(this._def, this.check), description: this.description }, check)
  }

  /** Add a check that a JSON schema names too. */
  #limited(row, message, holds) {
    const check = (value) => {
      const checked = this.check(value)
      return holds(checked) ? checked : fail(message)
    }
    return this.#with({ checks: [...(this._def.checks ?? []), row] }, check)
  }

  #changed = (change) => this.#with({}, (value) => change(this.check(value)))
  min = (value, told) => this.#limited(this.#row("min", value), textOf(told, `must be at least ${value}`), (given) => sizeOf(given) >= value)
  max = (value, told) => this.#limited(this.#row("max", value), textOf(told, `must be at most ${value}`), (given) => sizeOf(given) <= value)
  length = (value, told) => this.min(value, told).max(value, told)
  nonempty = (told) => this.min(1, told)
  gte = (value, told) => this.min(value, told)
  lte = (value, told) => this.max(value, told)
  gt = (value, told) => this.#limited({ kind: "min", value, inclusive: false }, textOf(told, `must be over ${value}`), (given) => given > value)
  lt = (value, told) => this.#limited({ kind: "max", value, inclusive: false }, textOf(told, `must be under ${value}`), (given) => given < value)
  int = (told) => this.#limited({ kind: "int" }, textOf(told, "must be a whole number"), Number.isInteger)
  safe = () => this.#limited({ kind: "safe" }, "must be a safe whole number", Number.isSafeInteger)
  finite = () => this.#limited({ kind: "finite" }, "must be finite", Number.isFinite)
  multipleOf = (value, told) => this.#limited({ kind: "multipleOf", value }, textOf(told, `must be a multiple of ${value}`), (given) => Math.abs(given / value - Math.round(given / value)) < 1e-9)
  step = (value, told) => this.multipleOf(value, told)
  positive = (told) => this.gt(0, told)
  negative = (told) => this.lt(0, told)
  nonnegative = (told) => this.min(0, told)
  nonpositive = (told) => this.max(0, told)
  regex = (regex, told) => this.#limited({ kind: "regex", regex }, textOf(told, `must match ${regex}`), (given) => given.search(regex) >= 0)
  startsWith = (start, told) => this.#limited({ kind: "startsWith", value: start }, textOf(told, `must start with ${start}`), (given) => given.startsWith(start))
  endsWith = (end, told) => this.#limited({ kind: "endsWith", value: end }, textOf(told, `must end with ${end}`), (given) => given.endsWith(end))
  includes = (part, told) => this.#limited({ kind: "includes", value: part }, textOf(told, `must have ${part} in it`), (given) => given.includes(part))
  email = (told) => this.#limited({ kind: "email" }, textOf(told, "must be an email address"), (given) => /^\S+@\S+\.\S+$/.test(given))
  url = (told) => this.#limited({ kind: "url" }, textOf(told, "must be a URL"), (given) => URL.canParse(given))
  uuid = (told) => this.#limited({ kind: "uuid" }, textOf(told, "must be a UUID"), (given) => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(given))
  datetime = (told) => this.#limited({ kind: "datetime" }, textOf(told, "must be a date and time"), (given) => /^\d{4}-\d\d-\d\dT/.test(given) && !Number.isNaN(Date.parse(given)))
  date = (told) => this.#limited({ kind: "date" }, textOf(told, "must be a date"), (given) => /^\d{4}-\d\d-\d\d$/.test(given))
  trim = () => this.#changed((given) => given.trim())
  toLowerCase = () => this.#changed((given) => given.toLowerCase())
  toUpperCase = () => this.#changed((given) => given.toUpperCase())

  #row(kind, value) {
    if (this._def.typeName === "ZodArray") return { check: `${kind}_length`, [`${kind}imum`]: value }
    return { kind, value, inclusive: true }
  }

  #object = (shape, rest = {}) => object(shape, { unknownKeys: this._def.unknownKeys, catchall: this._def.catchall, description: this.description, ...rest })
  extend = (more) => this.#object({ ...this.shape, ...more })
  safeExtend = (more) => this.extend(more)
  merge = (other) => this.extend(other.shape)
  pick = (mask) => this.#object(Object.fromEntries(Object.entries(this.shape).filter(([name]) => mask[name])))
  omit = (mask) => this.#object(Object.fromEntries(Object.entries(this.shape).filter(([name]) => !mask[name])))
  partial = (mask) => this.#object(Object.fromEntries(Object.entries(this.shape).map(([name, part]) => [name, !mask || mask[name] ? part.optional() : part])))
  required = () => this.#object(Object.fromEntries(Object.entries(this.shape).map(([name, part]) => [name, part._def.typeName === "ZodOptional" ? part.unwrap() : part])))
  strict = () => this.#object(this.shape, { unknownKeys: "strict" })
  strip = () => this.#object(this.shape, { unknownKeys: "strip" })
  passthrough = () => this.#object(this.shape, { unknownKeys: "passthrough" })
  loose = () => this.passthrough()
  catchall = (rest) => this.#object(this.shape, { catchall: rest })
  keyof = () => z.enum(Object.keys(this.shape))

  parse = (value) => this.check(value)
  parseAsync = async (value) => this.check(value)
  safeParse(value) {
    try {
      return { success: true, data: this.check(value) }
    } catch (error) {
      if (!(error instanceof ZodError)) throw error
      return { success: false, error }
    }
  }

  safeParseAsync = async (value) => this.safeParse(value)
  isOptional = () => this.safeParse(undefined).success
  isNullable = () => this.safeParse(null).success
}

function synchronous(value) {
  if (typeof value?.then === "function") throw new Error(`A check or a transformation that waits needs the package zod itself. ${INSTALL}`)
  return value
}

/** Let what is not here say so, instead of "is not a function". */
const explaining = (target, name) =>
  new Proxy(target, {
    get(object, part) {
      if (typeof part === "symbol" || part in object || part === "then" || part === "toJSON" || part.startsWith("_")) {
        const value = object[part]
        return typeof value === "function" && value.prototype === undefined ? value.bind(object) : value
      }
      throw new Error(`${name} has no \`${part}\` without the package zod. ${INSTALL}`)
    },
  })

const make = (definition, check) => explaining(new Schema(definition, check), "a schema")

const simple = (typeName, expected, holds) => (told) => make({ typeName, description: told?.description }, (value) => (holds(value) ? value : expect(expected, value)))

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value)

function object(shape, rest = {}) {
  const check = (value) => {
    if (!isObject(value)) expect("an object", value)
    const made = Object.fromEntries(checkEach(Object.entries(shape), (name, part) => part.parse(value[name])).filter(([name, part]) => part !== undefined || name in value))
    const others = Object.entries(value).filter(([name]) => !(name in shape))
    if (rest.catchall) return { ...made, ...Object.fromEntries(checkEach(others, (_, part) => rest.catchall.parse(part))) }
    if (others.length && rest.unknownKeys === "strict") fail(`has unknown keys: ${others.map(([name]) => name).join(", ")}`, "unrecognized_keys")
    return rest.unknownKeys === "passthrough" ? { ...made, ...Object.fromEntries(others) } : made
  }
  return make({ typeName: "ZodObject", shape: () => shape, ...rest }, check)
}

function union(options) {
  const check = (value) => {
    for (const option of options) {
      const outcome = option.safeParse(value)
      if (outcome.success) return outcome.data
    }
    return fail("is none of the allowed kinds", "invalid_union")
  }
  return make({ typeName: "ZodUnion", options: [...options] }, check)
}

const oneOf = (typeName) => (values) => {
  // Of TypeScript's enumerations of numbers the names are keys of the reverse.
  const all = (Array.isArray(values) ? values : Object.entries(values).filter(([name, value]) => typeof values[value] !== "number" || values[value] === name).map(([, value]) => value))
  return make({ typeName, values: all }, (given) => (all.includes(given) ? given : fail(`expected one of ${all.join(", ")}`, "invalid_enum_value")))
}

const string = simple("ZodString", "a string", (value) => typeof value === "string")
const number = simple("ZodNumber", "a number", (value) => typeof value === "number" && !Number.isNaN(value))
const boolean = simple("ZodBoolean", "true or false", (value) => typeof value === "boolean")
const bigint = simple("ZodBigInt", "a whole number", (value) => typeof value === "bigint")
const date = simple("ZodDate", "a date", (value) => value instanceof Date && !Number.isNaN(+value))

/** A schema before whose check the given value is converted, as `z.coerce` does. */
const converting = (schema, convert) => () => {
  const plain = schema()
  return make({ ...plain._def, coerce: true }, (value) => plain.check(convert(value)))
}

const toBigInt = (value) => {
  try {
    return BigInt(value)
  } catch {
    return value
  }
}

export const z = explaining(
  {
    string,
    number,
    boolean,
    bigint,
    date,
    null: simple("ZodNull", "null", (value) => value === null),
    undefined: simple("ZodUndefined", "nothing", (value) => value === undefined),
    void: simple("ZodVoid", "nothing", (value) => value === undefined),
    any: simple("ZodAny", "", () => true),
    unknown: simple("ZodUnknown", "", () => true),
    never: simple("ZodNever", "nothing", () => false),
    int: () => number().int(),
    email: () => string().email(),
    url: () => string().url(),
    uuid: () => string().uuid(),
    object: (shape = {}) => object(shape),
    strictObject: (shape) => object(shape, { unknownKeys: "strict" }),
    looseObject: (shape) => object(shape, { unknownKeys: "passthrough" }),
    literal: (value) => (Array.isArray(value) ? oneOf("ZodEnum")(value) : make({ typeName: "ZodLiteral", value }, (given) => (given === value ? given : fail(`expected ${value}`, "invalid_literal")))),
    enum: oneOf("ZodEnum"),
    nativeEnum: oneOf("ZodNativeEnum"),
    array(item) {
      const check = (value) => (Array.isArray(value) ? checkEach(value.entries(), (_, part) => item.parse(part)).map(([, part]) => part) : expect("an array", value))
      return make({ typeName: "ZodArray", type: item }, check)
    },
    tuple(items) {
      const check = (value) => {
        if (!Array.isArray(value) || value.length !== items.length) fail(`expected an array of ${items.length}`)
        return checkEach(value.entries(), (at, part) => items[at].parse(part)).map(([, part]) => part)
      }
      return make({ typeName: "ZodTuple", items, rest: null }, check)
    },
    record(...types) {
      const [keyType, valueType] = types.length > 1 ? types : [string(), types[0]]
      const each = (key, part) => [keyType.parse(key), valueType.parse(part)]
      const check = (value) => (isObject(value) ? Object.fromEntries(checkEach(Object.entries(value), each).map(([, pair]) => pair)) : expect("an object", value))
      return make({ typeName: "ZodRecord", keyType, valueType }, check)
    },
    union,
    discriminatedUnion: (_, options) => union(options),
    intersection(left, right) {
      const check = (value) => {
        const made = [left.parse(value), right.parse(value)]
        return made.every(isObject) ? Object.assign({}, ...made) : made[1]
      }
      return make({ typeName: "ZodIntersection", left, right }, check)
    },
    optional: (schema) => schema.optional(),
    nullable: (schema) => schema.nullable(),
    nullish: (schema) => schema.nullish(),
    lazy: (getter) => make({ typeName: "ZodLazy", getter }, (value) => getter().parse(value)),
    preprocess: (convert, schema) => make({ typeName: "ZodEffects", schema }, (value) => schema.parse(synchronous(convert(value)))),
    custom: (holds = () => true, told) => make({ typeName: "ZodAny" }, (value) => (holds(value) ? value : fail(textOf(told, "is not valid")))),
    instanceof: (type) => make({ typeName: "ZodAny" }, (value) => (value instanceof type ? value : fail(`expected ${type.name}`))),
    coerce: {
      string: converting(string, String),
      number: converting(number, Number),
      boolean: converting(boolean, Boolean),
      bigint: converting(bigint, toBigInt),
      date: converting(date, (value) => new Date(value)),
    },
    ZodError,
    ZodIssueCode: new Proxy({}, { get: (_, code) => code }),
    NEVER: Symbol("never"),
  },
  "z",
)

export default z
export const { any, array, coerce, custom, discriminatedUnion, email, int, intersection, lazy, literal, looseObject, nativeEnum, never } = z
export const { nullable, nullish, optional, preprocess, record, strictObject, tuple, unknown, url, uuid, NEVER, ZodIssueCode } = z
export { bigint, boolean, date, number, string, union }
const { enum: enumeration, null: nothing, object: anObject, undefined: missing, void: noResult, instanceof: instance } = z
export { anObject as object, enumeration as enum, instance as instanceof, missing as undefined, noResult as void, nothing as null }
