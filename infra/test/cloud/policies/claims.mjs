// Claims about the principals that may use the keys and the bucket, and those that may not,
// whatever their own policies allow. The functions' calls are recorded, so they are not here.

import { contexts, keyCondition, sealing } from './calls.mjs'

const may = (who, why, action, conditions = {}, object) => ({ who, why, action, ...(object && { object }), conditions, right: true })
const mayNot = (...call) => ({ ...may(...call), right: false })
// Denied twice: nothing allows it, and a separate statement denies it.
const never = (...call) => ({ ...mayNot(...call), twice: true })

// The uses of a key's material. AWS's pages about DynamoDB encryption at rest (which add
// DescribeKey and CreateGrant) and about encrypted log groups name these.
const uses = ['Decrypt', 'Encrypt', 'GenerateDataKey', 'GenerateDataKeyWithoutPlaintext', 'ReEncryptFrom', 'ReEncryptTo']
const ours = keyCondition(sealing)
const purpose = 'kms:EncryptionContext:purpose'
const other = keyCondition({ ...sealing, purpose: 'other' })

/** The principals of the claims. */
function people({ account, region, parameters }) {
  return {
    admin: `arn:aws:iam::${account}:role/admin`,
    root: `arn:aws:iam::${account}:root`,
    router: parameters.RouterRoleArn,
    rewrap: parameters.RewrapRoleArn,
    outsider: 'arn:aws:iam::444455556666:role/admin',
    logs: `logs.${region}.amazonaws.com`,
    cloudwatch: 'cloudwatch.amazonaws.com',
  }
}

function sealingKey(stack) {
  const { admin, root, router, rewrap, outsider } = people(stack)
  const create = stack.functions.CreateByokKeyFunction.role
  const others = Object.values(stack.functions).map((f) => f.role).filter((role) => role !== create && role !== router)
  return [
    may(router, 'opens credentials', 'kms:Decrypt', ours),
    // A separate statement denies another purpose, or none.
    ...contexts.map(([why, context]) => (context[purpose]?.[0] === sealing.purpose ? mayNot : never)(router, `opens with ${why}`, 'kms:Decrypt', context)),
    mayNot(router, 'seals', 'kms:GenerateDataKey', ours),
    ...['kms:ReEncryptFrom', 'kms:ReEncryptTo'].flatMap((action) => [
      may(rewrap, 'moves credentials', action, ours),
      never(rewrap, 'moves what is no credential', action, other),
      never(rewrap, 'moves what has no context', action),
    ]),
    mayNot(rewrap, 'opens credentials', 'kms:Decrypt', ours),
    ...uses.flatMap((use) => [admin, root, outsider, ...others].flatMap((who) =>
      [mayNot(who, 'uses the key', `kms:${use}`, ours), ...[other, {}].map((context) => never(who, 'uses the key', `kms:${use}`, context))])),
    ...ofCreate(create),
    mayNot(admin, 'finds a way round', 'kms:CreateGrant', ours),
    ...administering(admin, outsider),
  ]
}

function ofCreate(role) {
  return [
    never(role, 'seals for another purpose', 'kms:GenerateDataKey', other),
    never(role, 'seals without a context', 'kms:GenerateDataKey'),
    // Otherwise the conditions of the role's policy would restrict nothing.
    { ...mayNot(role, 'seals by the key policy alone', 'kms:GenerateDataKey', ours), alone: true },
    ...uses.filter((use) => use !== 'GenerateDataKey').map((use) => mayNot(role, 'uses the key otherwise', `kms:${use}`, ours)),
  ]
}

const administering = (admin, outsider) => ['kms:DisableKey', 'kms:PutKeyPolicy', 'kms:ScheduleKeyDeletion'].flatMap((action) => [
  may(admin, 'administers the key', action),
  mayNot(outsider, 'administers the key', action),
])

function storageKey(stack) {
  const { admin, outsider } = people(stack)
  const through = (service) => ({ 'kms:ViaService': [`${service}.${stack.region}.amazonaws.com`] })
  const grant = (forAws) => ({ 'kms:GrantIsForAWSResource': [forAws] })
  return [
    may(admin, 'makes a table', 'kms:DescribeKey', through('dynamodb')),
    ...uses.flatMap((use) => [
      ...['dynamodb', 's3'].map((service) => may(admin, `uses ${service}`, `kms:${use}`, through(service))),
      mayNot(outsider, 'uses a table of ours', `kms:${use}`, through('dynamodb')),
      mayNot(admin, 'uses another service', `kms:${use}`, through('ssm')),
    ]),
    mayNot(admin, 'uses the key by hand', 'kms:Decrypt'),
    may(admin, 'makes a table', 'kms:CreateGrant', { ...through('dynamodb'), ...grant('true') }),
    mayNot(outsider, 'makes a table', 'kms:CreateGrant', { ...through('dynamodb'), ...grant('true') }),
    mayNot(admin, 'grants to somebody', 'kms:CreateGrant', { ...through('dynamodb'), ...grant('false') }),
    mayNot(admin, 'grants to somebody', 'kms:CreateGrant', through('dynamodb')),
    mayNot(admin, 'grants by hand', 'kms:CreateGrant', grant('true')),
    mayNot(admin, 'grants through S3', 'kms:CreateGrant', { ...through('s3'), ...grant('true') }),
    ...ofLogs(stack),
    ...ofAlarms(stack),
    ...administering(admin, outsider),
  ]
}

function ofLogs(stack) {
  const { admin, logs } = people(stack)
  const of = (group, account = stack.account) =>
    ({ 'kms:EncryptionContext:aws:logs:arn': [`arn:aws:logs:${stack.region}:${account}:log-group:${group}`] })
  const own = `${stack.name}-Group`
  const groups = [own, `/aws/events/${stack.name}-key-changes`, 'API-Gateway-Execution-Logs_abc/live', `aws-waf-logs-${stack.name}-abc`]
  return [
    ...uses.flatMap((use) => groups.map((group) => may(logs, 'keeps logs', `kms:${use}`, of(group)))),
    mayNot(logs, 'keeps logs of another stack', 'kms:Decrypt', of('another')),
    mayNot(logs, 'keeps logs of another account', 'kms:Decrypt', of(own, '444455556666')),
    mayNot(logs, 'keeps what is no log', 'kms:Decrypt'),
    mayNot(logs, 'grants', 'kms:CreateGrant', of(own)),
    mayNot(admin, 'reads logs around CloudWatch', 'kms:Decrypt', of(own)),
  ]
}

function ofAlarms(stack) {
  const { admin, cloudwatch } = people(stack)
  const own = `${stack.name}-Alarm`
  const from = (account, alarm) => ({
    'aws:SourceAccount': [account],
    'aws:SourceArn': [`arn:aws:cloudwatch:${stack.region}:${stack.account}:alarm:${alarm}`],
  })
  // AWS's page on alarms to encrypted topics names these.
  const sending = ['Decrypt', 'GenerateDataKey', 'GenerateDataKeyWithoutPlaintext'].flatMap((use) => [
    may(cloudwatch, 'sends an alarm', `kms:${use}`, from(stack.account, own)),
    mayNot(cloudwatch, 'sends another stack\'s alarm', `kms:${use}`, from(stack.account, 'another')),
    mayNot(cloudwatch, 'sends another account\'s alarm', `kms:${use}`, from('444455556666', own)),
    mayNot(admin, 'passes for an alarm', `kms:${use}`, from(stack.account, own)),
  ])
  const { 'aws:SourceAccount': account, 'aws:SourceArn': alarm } = from(stack.account, own)
  return [
    ...sending,
    mayNot(cloudwatch, 'names no account', 'kms:Decrypt', { 'aws:SourceArn': alarm }),
    mayNot(cloudwatch, 'names no alarm', 'kms:Decrypt', { 'aws:SourceAccount': account }),
    mayNot(cloudwatch, 'encrypts', 'kms:Encrypt', from(stack.account, own)),
  ]
}

function filesBucket(stack) {
  const { admin, root } = people(stack)
  const plain = { 'aws:SecureTransport': ['false'] }
  const tls = (version) => ({ 's3:TlsVersion': [version] })
  return [
    may(admin, 'uploads', 's3:PutObject', tls('1.2'), 'files/*/*'),
    mayNot(admin, 'uploads without TLS', 's3:PutObject', plain, 'files/*/*'),
    mayNot(admin, 'lists in plain sight', 's3:ListBucket', plain),
    mayNot(admin, 'uploads with an old TLS', 's3:PutObject', tls('1.1'), 'files/*/*'),
    mayNot(admin, 'lists with an old TLS', 's3:ListBucket', tls('1.1')),
    mayNot(admin, 'locks objects', 's3:PutBucketObjectLockConfiguration'),
    mayNot(admin, 'holds an object', 's3:PutObjectLegalHold', {}, 'files/*/*'),
    mayNot(admin, 'retains an object', 's3:PutObjectRetention', {}, 'files/*/*'),
    may(admin, 'changes the versioning', 's3:PutBucketVersioning'),
    may(root, 'lists', 's3:ListBucket'),
    mayNot(root, 'turns MFA delete on', 's3:PutBucketVersioning'),
  ]
}

/** The claims about each resource with a resource policy, by logical id. */
export const claims = (stack) => Object.fromEntries(
  Object.entries({ SealingKey: sealingKey, StorageKey: storageKey, FilesBucket: filesBucket })
    .map(([resource, of]) => [resource, of(stack).map((claim) => ({ resource, ...claim }))]))
