// Mutants that change no verdict, and the reason why that is right.

const reasons = [
  {
    where: 'CreateByokKeyFunction', sid: 'StoreCredential', change: /^StringEqualsIfExists .*: NONE changed$/,
    why: 'The code sends no ReturnValues. If AWS reads that as NONE, NONE must be allowed.',
  },
  {
    where: 'SealingKey', sid: 'Seal', change: /^ArnEquals made ArnEqualsIfExists$/,
    why: 'aws:PrincipalArn is in every signed request.',
  },
  {
    where: 'StorageKey', sid: 'GrantsOfDynamoDb', change: /^action .* widened to kms:\*$/,
    why: 'Besides CreateGrant only ListGrants and RevokeGrant have kms:GrantIsForAWSResource, and administrators may both.',
  },
  {
    where: 'StorageKey', sid: 'Logs', change: /^action kms:Describe\*/,
    why: 'AWS\'s page about encrypted log groups lists it. DescribeKey has no encryption context, so it is never granted here.',
  },
  {
    where: 'SealingKey', sid: 'Administer', change: /^action .* removed$/,
    why: 'What an administrator may do. None of it uses the key, and nothing of the service does it.',
  },
  {
    where: 'StorageKey', sid: 'Administer', change: /^action .* removed$/,
    why: 'As for the sealing key.',
  },
]

/** Divides survivors into those with a reason and those without. */
export function explain(survivors) {
  const reasoned = new Map()
  const unexplained = []
  for (const survivor of survivors) {
    const reason = reasons.find((r) => r.where === survivor.where && r.sid === survivor.sid && r.change.test(survivor.change))
    if (reason) reasoned.set(reason, [...(reasoned.get(reason) ?? []), survivor])
    else unexplained.push(survivor)
  }
  return { reasoned, unexplained, stale: reasons.filter((reason) => !reasoned.has(reason)) }
}
