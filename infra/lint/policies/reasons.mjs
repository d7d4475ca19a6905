// Mutants that change no verdict, and the reason why that is right.

const reasons = [
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
