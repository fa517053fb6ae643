# Runs a script and reports its variables. Arguments: the script, the file for the variables, their names.
# Its `exit` and its errors end this too; the report is written however it ends.
param(
  [Parameter(Position = 0)] [string] $SlipwayScript,
  [Parameter(Position = 1)] [string] $SlipwayOutputs,
  [Parameter(ValueFromRemainingArguments = $true)] [string[]] $SlipwayNames
)
try {
  . $SlipwayScript
} finally {
  $SlipwayReport = [System.IO.File]::Create($SlipwayOutputs)
  foreach ($SlipwayName in $SlipwayNames) {
    $SlipwayValue = Get-Variable -Name $SlipwayName -ValueOnly -ErrorAction SilentlyContinue
    if ($null -eq $SlipwayValue) { $SlipwayValue = [System.Environment]::GetEnvironmentVariable($SlipwayName) }
    if ($null -ne $SlipwayValue) {
      $SlipwayBytes = [System.Text.Encoding]::UTF8.GetBytes("$SlipwayName`0$SlipwayValue`0")
      $SlipwayReport.Write($SlipwayBytes, 0, $SlipwayBytes.Length)
    }
  }
  $SlipwayReport.Dispose()
}
