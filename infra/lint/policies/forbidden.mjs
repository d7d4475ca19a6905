// What each function must not do, by name. Neighbours of the calls that are made
// (neighbours.mjs) and the calls of the other functions are forbidden besides.

import { openTable } from './unseen.mjs'

const call = (why, action, resource, conditions = {}, object) => ({ why, action, resource, ...(object && { object }), conditions })

// The forms that the good calls have, for one thing to be wrong with each.
export const sealing = {
  purpose: 'signalbox/credential', account: '*', workspace: '*', credential: '*', provider: '*',
}
export const keyCondition = (context) => ({
  ...Object.fromEntries(Object.entries(context).map(([key, value]) => [`kms:EncryptionContext:${key}`, [value]])),
  ...(Object.keys(context).length > 0 && { 'kms:EncryptionContextKeys': Object.keys(context) }),
})
const counter = {
  'dynamodb:LeadingKeys': ['workspace#*'],
  'dynamodb:Attributes': ['account', 'deleted_at', 'next', 'pk', 'sk', 'v'],
  'dynamodb:ReturnValues': ['UPDATED_NEW'],
}
export const without = (conditions, key) => Object.fromEntries(Object.entries(conditions).filter(([k]) => k !== key))

const createByokKey = [
  call('opens what was sealed', 'kms:Decrypt', 'SealingKey', keyCondition(sealing)),
  call('seals for another purpose', 'kms:GenerateDataKey', 'SealingKey', keyCondition({ ...sealing, purpose: 'other' })),
  call('seals without a context', 'kms:GenerateDataKey', 'SealingKey'),
  ...Object.keys(sealing).map((key) =>
    call(`seals for no ${key}`, 'kms:GenerateDataKey', 'SealingKey', keyCondition(without(sealing, key)))),
  call('seals with more in the context', 'kms:GenerateDataKey', 'SealingKey', keyCondition({ ...sealing, more: '*' })),
  call('writes a workspace whole', 'dynamodb:PutItem', 'AccessTable', { 'dynamodb:LeadingKeys': ['workspace#*'] }),
  call('makes an API key', 'dynamodb:PutItem', 'AccessTable', { 'dynamodb:LeadingKeys': ['key#*'] }),
  call('changes an API key', 'dynamodb:UpdateItem', 'AccessTable', { ...counter, 'dynamodb:LeadingKeys': ['key#*'] }),
  call('changes an account', 'dynamodb:UpdateItem', 'AccessTable', { ...counter, 'dynamodb:LeadingKeys': ['account#*'] }),
  call('changes more than the counter', 'dynamodb:UpdateItem', 'AccessTable',
    { ...counter, 'dynamodb:Attributes': ['account', 'default_workspace', 'next', 'pk', 'sk'] }),
  call('names no attributes', 'dynamodb:UpdateItem', 'AccessTable', without(counter, 'dynamodb:Attributes')),
  call('names no item', 'dynamodb:UpdateItem', 'AccessTable', without(counter, 'dynamodb:LeadingKeys')),
  ...['ALL_NEW', 'ALL_OLD'].map((values) =>
    call(`reads a workspace by ${values}`, 'dynamodb:UpdateItem', 'AccessTable', { ...counter, 'dynamodb:ReturnValues': [values] })),
  call('leaves open what comes back', 'dynamodb:UpdateItem', 'AccessTable', without(counter, 'dynamodb:ReturnValues')),
  call('names no item', 'dynamodb:GetItem', 'AccessTable', { 'dynamodb:Attributes': ['pk'] }),
  call('names no item', 'dynamodb:BatchGetItem', 'AccessTable'),
  call('reads an account among keys', 'dynamodb:BatchGetItem', 'AccessTable', { 'dynamodb:LeadingKeys': ['key#*', 'account#*'] }),
  call('writes a limiter', 'dynamodb:PutItem', 'ControlTable', { 'dynamodb:LeadingKeys': ['limit#*'] }),
  call('names no item', 'dynamodb:PutItem', 'ControlTable'),
  call('reads a credential', 'dynamodb:GetItem', 'CredentialsTable', { 'dynamodb:LeadingKeys': ['workspace#*'] }),
  call('lists credentials', 'dynamodb:Query', 'CredentialsTable', { 'dynamodb:LeadingKeys': ['workspace#*'] }),
  call('reads a credential by writing over it', 'dynamodb:PutItem', 'CredentialsTable',
    { 'dynamodb:LeadingKeys': ['workspace#*'], 'dynamodb:ReturnValues': ['ALL_OLD'] }),
  call('names no item', 'dynamodb:PutItem', 'CredentialsTable'),
]

const getSyncJob = [
  ...['PutItem', 'UpdateItem', 'DeleteItem', 'BatchWriteItem'].flatMap((verb) =>
    [['AccessTable', 'key#*'], ['SyncJobsTable', 'job#*'], ['ControlTable', 'idem#*'], ['CredentialsTable', 'workspace#*']].map(
      ([table, key]) => call('writes', `dynamodb:${verb}`, table, { 'dynamodb:LeadingKeys': [key] }))),
  call('reads a credential', 'dynamodb:GetItem', 'CredentialsTable', { 'dynamodb:LeadingKeys': ['workspace#*'] }),
  call('names no item', 'dynamodb:GetItem', 'AccessTable', { 'dynamodb:Attributes': ['pk'] }),
  call('names no item', 'dynamodb:GetItem', 'SyncJobsTable', { 'dynamodb:Attributes': ['pk'] }),
  call('lists all jobs', 'dynamodb:Scan', 'SyncJobsTable'),
]

const deleteFile = [
  call('reads a credential', 'dynamodb:GetItem', 'CredentialsTable', { 'dynamodb:LeadingKeys': ['workspace#*'] }),
  call('remembers a request', 'dynamodb:UpdateItem', 'ControlTable', { 'dynamodb:LeadingKeys': ['idem#*'] }),
  call('names no item', 'dynamodb:UpdateItem', 'ControlTable', { 'dynamodb:Attributes': ['pk', 'tat'] }),
  call('names no item', 'dynamodb:GetItem', 'AccessTable', { 'dynamodb:Attributes': ['pk'] }),
  call('deletes without a condition', 's3:DeleteObject', 'FilesBucket', {}, 'files/*/*'),
  call('deletes if the content is known', 's3:DeleteObject', 'FilesBucket', { 's3:if-match': ['"0123"'] }, 'files/*/*'),
  call('deletes what is no file', 's3:DeleteObject', 'FilesBucket', { 's3:if-match': ['*'] }, 'other/*'),
  call('deletes versions of what is no file', 's3:DeleteObjectVersion', 'FilesBucket', { 's3:versionid': ['*'] }, 'other/*'),
  call('uploads', 's3:PutObject', 'FilesBucket', {}, 'files/*/*'),
  call('downloads', 's3:GetObject', 'FilesBucket', {}, 'files/*/*'),
  call('lists what is no file', 's3:ListBucketVersions', 'FilesBucket', { 's3:prefix': ['other/*'] }),
  call('lists what is no file', 's3:ListBucket', 'FilesBucket', { 's3:prefix': ['other/*'] }),
]

const workspace = { 'dynamodb:LeadingKeys': ['workspace#*'] }

const router = [
  call('seals', 'kms:GenerateDataKey', 'SealingKey', keyCondition(sealing)),
  call('opens for another purpose', 'kms:Decrypt', 'SealingKey', keyCondition({ ...sealing, purpose: 'other' })),
  call('opens without a context', 'kms:Decrypt', 'SealingKey'),
  ...Object.keys(sealing).map((key) =>
    call(`opens for no ${key}`, 'kms:Decrypt', 'SealingKey', keyCondition(without(sealing, key)))),
  call('opens with more in the context', 'kms:Decrypt', 'SealingKey', keyCondition({ ...sealing, more: '*' })),
  ...['PutItem', 'UpdateItem', 'DeleteItem', 'BatchWriteItem'].flatMap((verb) =>
    ['AccessTable', 'CredentialsTable', 'ControlTable', 'SyncJobsTable'].map((table) => call('writes', `dynamodb:${verb}`, table, workspace))),
  call('reads an API key', 'dynamodb:GetItem', 'AccessTable', { 'dynamodb:LeadingKeys': ['key#*'] }),
  call('names no item', 'dynamodb:GetItem', 'AccessTable'),
  call('names no workspace', 'dynamodb:Query', 'CredentialsTable'),
  call('reads everybody\'s credentials', 'dynamodb:Scan', 'CredentialsTable'),
]

/** What no function may do with the storage key. */
const storageKey = (stack, used) => [
  ...['AccessTable', 'ControlTable', 'CredentialsTable', 'SyncJobsTable'].filter((table) => !used.has(table)).map((table) => ({
    why: `opens ${table}, which it does not use`, ...openTable(stack, table),
  })),
  ...[...used].flatMap((table) => ['kms:ViaService', 'kms:EncryptionContext:aws:dynamodb:tableName'].map((key) => {
    const open = openTable(stack, table)
    return { why: `opens ${table} without ${key}`, ...open, conditions: without(open.conditions, key) }
  })),
]

const byFunction = { GetSyncJobFunction: getSyncJob, CreateByokKeyFunction: createByokKey, DeleteFileFunction: deleteFile, Router: router }

/** What the function must not do; used are the tables that it uses. */
export function forbidden(stack, name, used) {
  if (!byFunction[name]) throw new Error(`nothing is said of what ${name} must not do`)
  return [...byFunction[name], ...storageKey(stack, used)].map((c) => ({ function: name, ...c }))
}
