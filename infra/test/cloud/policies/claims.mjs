// Claims about the principals that may use the keys and the bucket, whatever their own policies
// allow. A claim names what must be allowed; every other combination of its principals, actions
// and conditions must be denied. The functions' calls are recorded, so they are not here.

import { contexts, keyCondition, sealing } from './calls.mjs'

// The uses of a key's material. AWS's pages about DynamoDB encryption at rest (which add
// DescribeKey and CreateGrant) and about encrypted log groups name these.
const uses = ['Decrypt', 'Encrypt', 'GenerateDataKey', 'GenerateDataKeyWithoutPlaintext', 'ReEncryptFrom', 'ReEncryptTo'].map((use) => `kms:${use}`)

const claim = (right, who, action, conditions = {}, more = {}) => ({ who, action, conditions, right, ...more })
const may = (...call) => claim(true, ...call)
const mayNot = (...call) => claim(false, ...call)

/** All combinations, each right or wrong by a rule. */
function all(people, actions, conditions, isRight, more = () => ({})) {
  return people.flatMap((who) => actions.flatMap((action) => conditions.map((one) => claim(isRight(who, action, one), who, action, one, more(one)))))
}

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

const administering = ({ admin, outsider }) =>
  all([admin, outsider], ['kms:DisableKey', 'kms:PutKeyPolicy', 'kms:ScheduleKeyDeletion'], [{}], (who) => who === admin)

function sealingKey(stack) {
  const { admin, router, rewrap } = people(stack)
  const create = stack.functions.CreateByokKeyFunction.role
  const everybody = new Set([...Object.values(people(stack)), ...Object.values(stack.functions).map((f) => f.role)])
  const its = { [router]: ['kms:Decrypt'], [rewrap]: ['kms:ReEncryptFrom', 'kms:ReEncryptTo'], [create]: ['kms:GenerateDataKey'] }
  const ours = keyCondition(sealing)
  // Denied twice for another purpose, or none: nothing allows it, and a separate statement denies it.
  const twice = (conditions) => (conditions['kms:EncryptionContext:purpose']?.[0] === sealing.purpose ? {} : { twice: true })
  return [
    ...all([...everybody], uses, [ours, keyCondition({ ...sealing, purpose: 'other' }), {}], (who, action, one) => one === ours && Boolean(its[who]?.includes(action)), twice),
    ...contexts.map(([, context]) => mayNot(router, 'kms:Decrypt', context, twice(context))),
    // Otherwise the conditions of the role's policy would restrict nothing.
    mayNot(create, 'kms:GenerateDataKey', ours, { alone: true }),
    mayNot(admin, 'kms:CreateGrant', ours), // a grant would go round the policy
    ...administering(people(stack)),
  ]
}

function storageKey(stack) {
  const { admin, outsider, logs, cloudwatch } = people(stack)
  const elsewhere = '444455556666'
  const [dynamodb, s3, ssm] = ['dynamodb', 's3', 'ssm'].map((service) => ({ 'kms:ViaService': [`${service}.${stack.region}.amazonaws.com`] }))
  const granting = (by, forAws) => ({ ...by, 'kms:GrantIsForAWSResource': [forAws] })
  const making = granting(dynamodb, 'true')
  const group = (name, account = stack.account) => ({ 'kms:EncryptionContext:aws:logs:arn': [`arn:aws:logs:${stack.region}:${account}:log-group:${name}`] })
  const own = `${stack.name}-Group`
  const groups = [own, `/aws/events/${stack.name}-key-changes`, 'API-Gateway-Execution-Logs_abc/live', `aws-waf-logs-${stack.name}-abc`].map((name) => group(name))
  const alarm = (name, account = stack.account) =>
    ({ 'aws:SourceAccount': [account], 'aws:SourceArn': [`arn:aws:cloudwatch:${stack.region}:${stack.account}:alarm:${name}`] })
  const ours = alarm(`${stack.name}-Alarm`)
  const { 'aws:SourceAccount': _, ...noAccount } = ours
  const { 'aws:SourceArn': __, ...noAlarm } = ours
  // AWS's page on alarms to encrypted topics names these.
  const sending = ['kms:Decrypt', 'kms:GenerateDataKey', 'kms:GenerateDataKeyWithoutPlaintext']
  return [
    may(admin, 'kms:DescribeKey', dynamodb),
    ...all([admin, outsider, logs, cloudwatch], uses,
      [dynamodb, s3, ssm, {}, ...groups, group('another'), group(own, elsewhere), ours, alarm('another'), alarm(`${stack.name}-Alarm`, elsewhere), noAccount, noAlarm],
      (who, action, one) => (who === admin && [dynamodb, s3].includes(one)) || (who === logs && groups.includes(one))
        || (who === cloudwatch && one === ours && sending.includes(action))),
    ...all([admin, outsider, logs], ['kms:CreateGrant'], [making, granting(dynamodb, 'false'), dynamodb, granting({}, 'true'), granting(s3, 'true'), groups[0]],
      (who, _, one) => who === admin && one === making),
    ...administering(people(stack)),
  ]
}

function filesBucket(stack) {
  const { admin, root } = people(stack)
  const plain = { 'aws:SecureTransport': ['false'] }
  const tls = (version) => ({ 's3:TlsVersion': [version] })
  const files = { object: 'files/*/*' }
  const connections = [plain, tls('1.1'), tls('1.2')]
  const isRight = (_, __, connection) => connection === connections[2]
  return [
    ...all([admin], ['s3:PutObject'], connections, isRight, () => files),
    ...all([admin], ['s3:ListBucket'], connections, isRight),
    mayNot(admin, 's3:PutBucketObjectLockConfiguration'),
    ...all([admin], ['s3:PutObjectLegalHold', 's3:PutObjectRetention'], [{}], () => false, () => files),
    may(root, 's3:ListBucket'),
    // Only the root user can turn MFA delete on, and only by this action.
    ...all([admin, root], ['s3:PutBucketVersioning'], [{}], (who) => who === admin),
  ]
}

/** The claims about each resource with a resource policy, by logical id. */
export const claims = (stack) => Object.fromEntries(
  Object.entries({ SealingKey: sealingKey, StorageKey: storageKey, FilesBucket: filesBucket })
    .map(([resource, of]) => [resource, of(stack).map((one) => ({ resource, ...one }))]))
