// Permissions that a function needs for calls that no recorder sees: another service makes
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
    'kms:EncryptionContext:aws:dynamodb:tableName': [nameOf(stack, table)],
  },
})

const nameOf = (stack, table) => stack.arns[table].replace(/.*\//, '')

/** Permissions that the function needs in addition to its recorded calls. */
export function unseen(stack, name, calls) {
  const own = (why, call) => ({ function: name, why, ...call })
  const found = tables(calls).map((table) =>
    own('DynamoDB opens an encrypted table by the storage key, on behalf of each caller.', openTable(stack, table)))
  for (const { object } of calls.filter((c) => c.action === 's3:DeleteObject')) {
    // Whether S3 then compares the key as the prefix or has none is not documented.
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

/** Doubts about AWS that nothing on one machine can settle. */
export const doubts = [
  'Whether S3 judges a key that does not exist by s3:ListBucket or s3:ListBucketVersions, with the key as s3:prefix or with none; the policy allows each.',
  'Whether kms:Decrypt is all that DynamoDB asks of a caller of an encrypted table.',
  'Whether DeleteObjects by version id asks for s3:DeleteObjectVersion alone; AWS\'s page on it can be read so that s3:DeleteObject is asked too.',
  'Whether DynamoDB counts ReturnValuesOnConditionCheckFailure as dynamodb:ReturnValues; no policy here would refuse a call of ours if it does.',
]
