// A function's policies are judged by its recorded calls, by the calls here that no recorder
// sees, and by the calls here that the function must not make.

import { scopeOf } from './simulate.mjs'
import { actionsOn, conditionKeysOf } from './vocabulary.mjs'

// ---- Permissions that a function needs for calls that no recorder sees: another service makes
// them on its behalf, or AWS checks them with a recorded call. Each has its reason.

const tables = (calls) => [...new Set(calls.filter((c) => c.action.startsWith('dynamodb:')).map((c) => c.resource))]

/** The encryption context under which DynamoDB opens a table. */
export const openTable = (stack, table) => ({
  action: 'kms:Decrypt',
  resource: 'StorageKey',
  conditions: {
    'kms:ViaService': [`dynamodb.${stack.region}.amazonaws.com`],
    'kms:EncryptionContextKeys': ['aws:dynamodb:subscriberId', 'aws:dynamodb:tableName'],
    'kms:EncryptionContext:aws:dynamodb:subscriberId': [stack.account],
    'kms:EncryptionContext:aws:dynamodb:tableName': [stack.arns[table].replace(/.*\//, '')],
  },
})

/** Permissions that the function needs in addition to its recorded calls. */
export function unseen(stack, name, calls) {
  const own = (why, call) => ({ function: name, why, ...call })
  const found = tables(calls).map((table) =>
    own('DynamoDB opens an encrypted table by the storage key, on behalf of each caller.', openTable(stack, table)))
  for (const { object } of calls.filter((c) => c.action === 's3:DeleteObject')) {
    // AWS does not document whether S3 then compares the key as the prefix or has no prefix.
    for (const conditions of [{ 's3:prefix': [object] }, {}]) {
      found.push(own('Without it S3 answers 403 for a key that does not exist, where 404 is meant.',
        { action: 's3:ListBucket', resource: 'FilesBucket', conditions }))
    }
    found.push(own('As ListBucket, should S3 judge a missing key of a versioned bucket by this action.',
      { action: 's3:ListBucketVersions', resource: 'FilesBucket', conditions: {} }))
  }
  const next = stack.parameters.NextSealingKeyArn
  for (const call of next ? calls.filter((c) => c.resource === 'SealingKey') : []) {
    found.push({ ...call, resource: next, why: 'Once the stack names a next sealing key, credentials are sealed and opened under it as well.' })
  }
  if (!name.endsWith('Function')) return found // the router runs elsewhere
  const logs = name.replace(/Function$/, 'LogGroup')
  for (const action of ['logs:CreateLogStream', 'logs:PutLogEvents']) {
    found.push(own('Lambda writes the log by the function\'s role.', { action, resource: logs, conditions: {} }))
  }
  for (const action of ['xray:PutTelemetryRecords', 'xray:PutTraceSegments']) {
    found.push(own('Lambda writes traces by the function\'s role.', { action, resource: '*', conditions: {} }))
  }
  return found
}

// ---- Calls that a function must not make: its good calls with one thing wrong, and calls on
// tables that it does not use.

export const without = (conditions, key) => Object.fromEntries(Object.entries(conditions).filter(([k]) => k !== key))

// The encryption context of a sealed key, as IAM sees it.
export const sealing = {
  purpose: 'signalbox/credential', account: '*', workspace: '*', credential: '*', provider: '*',
}
export const keyCondition = (context) => ({
  ...Object.fromEntries(Object.entries(context).map(([key, value]) => [`kms:EncryptionContext:${key}`, [value]])),
  ...(Object.keys(context).length > 0 && { 'kms:EncryptionContextKeys': Object.keys(context) }),
})
/** The contexts that are wrong in one thing. */
export const contexts = [
  ['no context', {}], ['another purpose', { ...sealing, purpose: 'other' }], ['more in the context', { ...sealing, more: '*' }],
  ...Object.keys(sealing).map((key) => [`no ${key}`, without(sealing, key)]),
].map(([why, context]) => [why, keyCondition(context)])

/** The good call's conditions with one thing wrong, each with its name. */
function* wrong({ action, resource, conditions }) {
  if (conditions['kms:EncryptionContext:purpose']) yield* contexts
  for (const key of ['dynamodb:LeadingKeys', 'kms:ViaService', 'kms:EncryptionContext:aws:dynamodb:tableName', 's3:if-match']) {
    if (conditions[key]) yield [`names no ${key}`, without(conditions, key)]
  }
  if (conditions['s3:if-match']) yield ['knows the content', { 's3:if-match': ['"0123"'] }]
  if (/^dynamodb:(Delete|Put|Update)Item$/.test(action) && resource === 'CredentialsTable') yield ['reads by writing', { ...conditions, 'dynamodb:ReturnValues': ['ALL_OLD'] }]
  if (action === 'dynamodb:Query' && conditions['dynamodb:Select']) {
    yield ['reads what it may count', without(conditions, 'dynamodb:Select')]
    for (const select of ['ALL_ATTRIBUTES', 'SPECIFIC_ATTRIBUTES']) yield ['reads what it may count', { ...conditions, 'dynamodb:Select': [select] }]
    yield ['tests an attribute', { ...conditions, 'dynamodb:Attributes': [...conditions['dynamodb:Attributes'], 'seal'] }]
  }
  if (action !== 'dynamodb:UpdateItem' || resource !== 'AccessTable') return
  for (const values of ['ALL_NEW', 'ALL_OLD']) yield ['reads by writing', { ...conditions, 'dynamodb:ReturnValues': [values] }]
  for (const key of ['dynamodb:ReturnValues', 'dynamodb:Attributes']) yield [`leaves ${key} open`, without(conditions, key)]
  yield ['changes more than the counter', { ...conditions, 'dynamodb:Attributes': [...conditions['dynamodb:Attributes'], 'default_workspace'] }]
}

/** Calls that the function must not make. */
export function forbidden(stack, name, needed) {
  const used = new Set(needed.map((call) => call.resource))
  return [
    ...needed.flatMap((call) => [...wrong(call)].map(([why, conditions]) => ({ ...call, why, conditions }))),
    ...['AccessTable', 'ControlTable', 'CredentialsTable', 'SyncJobsTable'].filter((table) => !used.has(table))
      .map((table) => ({ function: name, why: `opens ${table}, which it does not use`, ...openTable(stack, table) })),
  ]
}

// ---- The neighbours of recorded calls: one step away, with another action, resource, or
// kind of item or object. The function may not make them, unless it was recorded
// making them.

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

/** The stack's resources, and one of the account that is not the stack's. */
function otherResources(stack, call) {
  const own = stack.arns[call.resource]
  if (!own) return []
  const foreign = own.replace(new RegExp(`${stack.name}-\\w+`), 'elsewhere')
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
  // Also together with an allowed one, because that must not let the rest pass.
  return others.flatMap((kind) => [one('dynamodb:LeadingKeys', [kind]), one('dynamodb:LeadingKeys', [...own, kind])])
}
