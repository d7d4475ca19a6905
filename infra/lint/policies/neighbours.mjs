// The neighbours of recorded calls: one step away, with another action, resource, or
// kind of item or object. The function may not make them, unless it was recorded
// making them.

import { actionsOn, conditionKeysOf } from './vocabulary.mjs'
import { scopeOf } from './request.mjs'

// The prefixes of partition keys, and one that nobody uses.
const kinds = ['key#*', 'account#*', 'workspace#*', 'job#*', 'idem#*', 'limit#*', 'other#*']
const objects = ['other/*', 'filesx/*']

/** All neighbours of one function's calls. */
export async function neighbours(stack, made) {
  const known = new Set(made.map(scopeOf))
  const found = new Map()
  for (const call of made) {
    for (const next of [...await otherActions(call), ...otherResources(stack, call), ...otherItems(call, known)]) {
      if (!known.has(scopeOf(next))) found.set(JSON.stringify(next), next)
    }
  }
  return [...found.values()]
}

async function otherActions(call) {
  const [service] = call.action.split(':')
  const names = await actionsOn(service, typeOf(call))
  return Promise.all(names.map(async (name) => {
    const keys = await conditionKeysOf(service, name)
    const kept = Object.entries(call.conditions).filter(([key]) => keys.has(key.replace(/^(kms:EncryptionContext):.*/, '$1')))
    return { ...call, action: `${service}:${name}`, conditions: Object.fromEntries(kept) }
  }))
}

/** The type of the call's resource, as AWS's list of actions has it. */
function typeOf(call) {
  if (call.resource === '*') return '*'
  switch (call.action.split(':')[0]) {
    case 'dynamodb': return 'table'
    case 'kms': return 'key'
    case 'logs': return 'log-stream'
    default: return call.object ? 'object' : 'bucket'
  }
}

const service = (arn) => arn.split(':')[2]

/** Those of the stack, and one of the account that is not the stack's. */
function otherResources(stack, call) {
  const own = stack.arns[call.resource]
  if (!own) return []
  const foreign = own.replace(/signalbox-\w+/, 'elsewhere')
  return [...Object.keys(stack.arns).filter((id) => service(stack.arns[id]) === service(own)), foreign]
    .map((resource) => ({ ...call, resource }))
}

function otherItems(call, known) {
  const one = (key, values) => ({ ...call, conditions: { ...call.conditions, [key]: values } })
  if (call.object) return objects.map((object) => ({ ...call, object }))
  if (call.conditions['s3:prefix']) return objects.map((prefix) => one('s3:prefix', [prefix]))
  const own = call.conditions['dynamodb:LeadingKeys']
  if (!own) return []
  const others = kinds.filter((kind) => !known.has(scopeOf(one('dynamodb:LeadingKeys', [kind]))))
  // Also together with an allowed one, which must not let the rest pass.
  return others.flatMap((kind) => [one('dynamodb:LeadingKeys', [kind]), one('dynamodb:LeadingKeys', [...own, kind])])
}
