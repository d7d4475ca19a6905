// Calls that a function must not make: its good calls with one thing wrong. Neighbours of
// its calls (neighbours.mjs) and the calls of the other functions are forbidden too.

import { openTable } from './unseen.mjs'

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

/** Why, and the conditions, of the good call with one thing wrong. */
function* wrong({ action, resource, conditions }) {
  if (conditions['kms:EncryptionContext:purpose']) yield* contexts
  for (const key of ['dynamodb:LeadingKeys', 'kms:ViaService', 'kms:EncryptionContext:aws:dynamodb:tableName', 's3:if-match']) {
    if (conditions[key]) yield [`names no ${key}`, without(conditions, key)]
  }
  if (conditions['s3:if-match']) yield ['knows the content', { 's3:if-match': ['"0123"'] }]
  if (action === 'dynamodb:PutItem' && resource === 'CredentialsTable') yield ['reads by writing', { ...conditions, 'dynamodb:ReturnValues': ['ALL_OLD'] }]
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
