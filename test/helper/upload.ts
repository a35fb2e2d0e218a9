/** Uploads as xAgent makes them. */
import { XAGENT_KEY } from './stand.js'

/** Uploads bytes for a channel and answers the gateway's reference. */
export async function upload(baseUrl: string, channelId: string, bytes: Buffer, filename: string): Promise<string> {
  const form = new FormData()
  form.append('file', new Blob([Uint8Array.from(bytes)]), filename)
  const response = await fetch(`${baseUrl}/files/uploads`, { method: 'POST', body: form, headers: { authorization: `Bearer ${XAGENT_KEY}`, 'x-xagent-connector-channel-id': channelId } })
  const answer = (await response.json()) as { file_ref: string; byte_size: number }
  if (response.status !== 200 || answer.byte_size !== bytes.length) throw new Error(`the upload was answered ${response.status} ${JSON.stringify(answer)}`)
  return answer.file_ref
}
